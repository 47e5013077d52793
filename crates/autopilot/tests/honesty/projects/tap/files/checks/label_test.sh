. ./shop.sh
[ "$(label tea)" = TEA ]
