. ./shop.sh
[ "$(total 1 2 3)" = 6 ]
