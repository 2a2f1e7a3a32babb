import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filtersFor } from './search-text.ts'

test('a search uses every filter that the text can match, the most likely first', () => {
  const hash = 'ab'.repeat(32)
  for (const [text, filters] of [
    ['', []],
    ['0b0e3c52-6b8f-4d1e-9f7e-2f1f8d6b9a11', ['id', 'sequence_id']],
    [hash, ['id', 'address', 'memo_begins', 'sequence_id']],
    [`0x${hash}`, ['id', 'address', 'memo_begins', 'sequence_id']],
    ['5'.repeat(87), ['id', 'address', 'memo_begins', 'sequence_id']],
    ['0x52908400098527886E0F7030069857D2E4169EE7', ['address', 'memo_begins', 'sequence_id']],
    ['bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4', ['address', 'memo_begins', 'sequence_id']],
    ['rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh', ['address', 'memo_begins', 'sequence_id']],
    ['alice.near', ['memo_begins', 'address', 'sequence_id']],
    ['0.0.1234', ['memo_begins', 'address', 'sequence_id']],
    ['rent', ['memo_begins', 'address', 'sequence_id']],
    ['rent of March', ['memo_begins', 'sequence_id']],
    ['x'.repeat(100), ['memo_begins', 'address', 'sequence_id']],
    ['x'.repeat(101), ['memo', 'address', 'sequence_id']],
    [`${'x'.repeat(100)} y`, ['memo', 'sequence_id']],
    ['x'.repeat(201), ['memo']],
  ] as const)
    assert.deepEqual(filtersFor(text), filters, text)
})
