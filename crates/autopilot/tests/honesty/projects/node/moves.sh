feature() { printf '\n/** The total less some percent. */\nexport function discounted(prices, percent) {\n  return (total(prices) * (100 - percent)) / 100;\n}\n' >> shop.js; }
tests() { printf "\ntest('discounted', () => {\n  assert.equal(shop.discounted([100], 10), 90);\n});\n" >> shop.test.js; }
works() { feature; tests; }
# Breaks what the test of labels expects.
breaks() { works; sed -i 's/name.trim().toUpperCase()/name.toLowerCase()/' shop.js; }
