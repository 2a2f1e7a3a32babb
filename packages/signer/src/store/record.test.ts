import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import { signBytes } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import { assertAge, DAY_S, receiptBytes } from '../policy/age.ts'
import { freezeRegistry } from '../policy/frozen.ts'
import { Store } from './index.ts'
import { openText, recoveryPublicKey, sealText } from '../keys/sealed.ts'
import type { Proven } from '../intent/request.ts'

const folder = mkdtempSync(join(tmpdir(), 'signer-record-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})

const IAT = 1_800_000_000
const code = (run: () => void): string | null => {
  try {
    run()
    return null
  } catch (error) {
    if (error instanceof Refusal) return error.code
    throw error
  }
}

test('rule 3: the clock of the record never goes back, not even after a restart', () => {
  const path = join(folder, 'clock.sqlite')
  let time = 5_000_000
  const first = new Store(path, () => time)
  assert.equal(first.clock(), 5_000_000)
  time = 1_000_000
  assert.equal(first.clock(), 5_000_000)
  time = 9_000_000
  first.saveClock()
  first.close()
  time = 2_000_000
  const second = new Store(path, () => time)
  assert.equal(second.clock(), 9_000_000)
  assert.equal(second.append('backup', { keys: 0, made_at: 1 }).at, 9_000_000)
  second.close()
})

test('a full disk refuses writes before signing, and the record continues once there is space', () => {
  const path = join(folder, 'full.sqlite')
  const store = new Store(path, () => IAT * 1000)
  store.append('backup', { keys: 0, made_at: 1 })
  const { height, head } = store.record
  // The database cannot grow by a page, as on a full disk.
  const { page_count: pages } = store.record.database.prepare('PRAGMA page_count').get() as {
    page_count: number
  }
  store.record.database.exec(`PRAGMA max_page_count=${pages}`)
  const large = (nonce: string) => ({
    kind: 'seen' as const,
    body: {
      api_key: 'k',
      nonce,
      intent: 'i'.repeat(3000),
      content: 'content',
      transaction_id: 't',
      iat: IAT,
      exp: IAT + 25,
      timely: true,
    },
  })
  assert.throws(() => store.appendAll(['a', 'b', 'c'].map(large)), /full/)
  assert.deepEqual(
    [store.record.height, store.record.head, store.state.seen.size],
    [height, head, 0],
  )
  store.appendSoon('backup', { keys: 1, made_at: 2 })
  store.record.database.exec('PRAGMA max_page_count=1000000')
  store.appendAll([large('d')])
  store.close()
  const again = new Store(path, () => IAT * 1000)
  assert.deepEqual(
    [again.record.height, again.state.seen.size],
    [height + 2, 1],
    'what waited is there, what was refused is not',
  )
  again.close()
})

test('rule 3: a request is valid for 24 hours, or 7 days if a node received it in time', () => {
  const store = new Store(join(folder, 'age.sqlite'), () => IAT * 1000)
  const identity = generateKeyPairSync('ed25519')
  const identities = new Map([[2, identity.publicKey]])
  const proven = (nonce: string): Proven => ({
    request: { token: '', method: '', uri: '', body: '' },
    enrolment: {
      api_key: 'k',
      public_key_pem: '',
      role: 'full',
      workspace: 'w',
      sub_account: 1,
      sub_account_name: 'main',
      revoked: false,
    },
    nonce,
    iat: IAT,
    exp: IAT + 25,
    transaction_id: '',
  })
  const content = { node: 2, api_key: 'k', nonce: 'b', intent: 'content', seen_at: IAT + 20 }
  const receipt = {
    receipt: content,
    signature: signBytes(identity.privateKey, receiptBytes(content)),
  }
  const late = { ...content, seen_at: IAT + 25 + 61 }
  const age = (nonce: string, now: number, receipts = [receipt], content = 'content') =>
    code(() => {
      assertAge({ state: store.state, identities, proven: proven(nonce), content, receipts, now })
    })
  assert.equal(age('a', IAT + DAY_S), null)
  assert.equal(age('a', IAT + DAY_S + 1), 'TOO_OLD')
  store.append('seen', {
    api_key: 'k',
    nonce: 'a',
    intent: 'i',
    content: 'content',
    transaction_id: 't',
    iat: IAT,
    exp: IAT + 25,
    timely: true,
  })
  assert.equal(age('a', IAT + DAY_S + 1), null)
  assert.equal(age('a', IAT + 7 * DAY_S), null)
  assert.equal(age('a', IAT + 7 * DAY_S + 1), 'TOO_OLD')
  assert.equal(age('b', IAT + DAY_S + 1), null)
  assert.equal(age('b', IAT + DAY_S + 1, []), 'TOO_OLD')
  assert.equal(age('b', IAT + DAY_S + 1, [receipt], 'other content'), 'TOO_OLD')
  assert.equal(age('c', IAT + DAY_S + 1), 'TOO_OLD')
  assert.equal(age('b', IAT + DAY_S + 1, [{ ...receipt, signature: '00'.repeat(64) }]), 'TOO_OLD')
  assert.equal(
    age('b', IAT + DAY_S + 1, [
      { receipt: late, signature: signBytes(identity.privateKey, receiptBytes(late)) },
    ]),
    'TOO_OLD',
  )
  store.append('restored', { generation: 1, not_before: (IAT + 1) * 1000 })
  assert.equal(age('a', IAT + 10), 'TOO_OLD')
  store.close()
})

test('the record is append-only, and waiting entries share the next flush', () => {
  const path = join(folder, 'append.sqlite')
  const store = new Store(path, () => 1)
  store.appendSoon('revoke', { api_key: 'one' })
  assert.equal(store.record.height, 0)
  assert.equal(store.append('revoke', { api_key: 'two' }).height, 2)
  assert.throws(() => {
    store.record.database.exec('DELETE FROM record')
  }, /append-only/)
  assert.throws(() => {
    store.record.database.exec("UPDATE record SET kind = 'x'")
  }, /append-only/)
  const head = store.record.head
  store.close()
  const again = new Store(path, () => 1)
  assert.equal(again.record.head, head)
  again.close()
})

test('writes that wait after a node has ended do not keep the process alive', () => {
  const path = join(folder, 'closed.sqlite')
  const store = new Store(path, () => 1)
  store.append('revoke', { api_key: 'one' })
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  store.close()
  store.appendSoon('revoke', { api_key: 'two' })
  assert.equal(timers(), before)
  const again = new Store(path, () => 1)
  assert.equal(again.record.height, 1)
  again.close()
})

test('only the recovery key can open a text that is encrypted to it', () => {
  const secret = new Uint8Array(32).fill(7)
  const sealed = sealText('text', recoveryPublicKey(secret))
  assert.equal(openText(sealed, secret), 'text')
  assert.throws(() => openText(sealed, new Uint8Array(32).fill(8)))
})

test('a record can be used only with the network type of its first start', () => {
  const path = join(folder, 'network.sqlite')
  const first = new Store(path, () => IAT * 1000)
  freezeRegistry(loadRegistry('local'), first)
  first.close()
  const second = new Store(path, () => IAT * 1000)
  assert.throws(() => {
    freezeRegistry(loadRegistry('mainnet'), second)
  }, /belongs to the network "local".*config\.json contains mode "mainnet"/)
  const height = second.record.height
  freezeRegistry(loadRegistry('local'), second)
  assert.equal(second.record.height, height)
  second.close()
})
