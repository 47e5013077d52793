feature() { printf '\n\ndef discounted(prices, percent):\n    """The total less some percent."""\n    return total(prices) * (100 - percent) / 100\n' >> shop.py; }
tests() { printf '\n\ndef check_discounted():\n    assert shop.discounted([100], 10) == 90\n' >> checks/shop_test.py; }
works() { feature; tests; }
# Breaks what the check of labels expects.
breaks() { works; sed -i 's/name.strip().title()/name.upper()/' shop.py; }
