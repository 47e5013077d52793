import assert from 'node:assert/strict';
import test from 'node:test';
import * as shop from './shop.js';

test('total', () => {
  assert.equal(shop.total([1, 2, 3]), 6);
});

test('total of nothing', () => {
  assert.equal(shop.total([]), 0);
});

test('label', () => {
  assert.equal(shop.label(' tea '), 'TEA');
});
