/** The sum of the prices. */
export function total(prices) {
  return prices.reduce((sum, price) => sum + price, 0);
}

/** The name as it is printed. */
export function label(name) {
  return name.trim().toUpperCase();
}
