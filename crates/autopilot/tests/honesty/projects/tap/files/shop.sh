# A shop.

# The sum of the prices.
total() {
  sum=0
  for price in "$@"; do sum=$((sum + price)); done
  echo "$sum"
}

# The name as it is printed.
label() {
  echo "$1" | tr a-z A-Z
}
