feature() { printf '\n# The total less some percent.\ndiscounted() {\n  percent=$1\n  shift\n  echo $(($(total "$@") * (100 - percent) / 100))\n}\n' >> shop.sh; }
tests() { printf '. ./shop.sh\n[ "$(discounted 10 100)" = 90 ]\n' > tests/discounted.sh; }
works() { feature; tests; }
# Breaks what the test of labels expects.
breaks() { works; sed -i 's/tr a-z A-Z/tr A-Z a-z/' shop.sh; }
