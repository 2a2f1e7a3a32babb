// Senders on Cardano: every part of a transaction that adds to its inputs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CardanoClient } from '../index.ts'
import { addressBytes } from './address.ts'
import { hashOf } from './body.ts'
import { array, byteString, map, tagged, uint } from './cbor.ts'
import { ADA, addressAt, CHANGE, PATH, TO } from '../../testing/cardano-support.ts'

const endpoint = { url: 'http://node' }
const STAKE_KEY = 'ab'.repeat(28)
const STAKE = 'stake1ux46h2at4w46h2at4w46h2at4w46h2at4w46h2at4w46h2cfk870n'
/** Returns a transaction with other possible sources of funds besides its inputs. */
function cardano(o: { more?: [number, Uint8Array][]; invalid?: boolean; inputs: unknown[] }): {
  client: CardanoClient
  txid: string
} {
  const body = map([
    [uint(0n), tagged(258n, array([]))],
    [uint(1n), array([array([byteString(addressBytes(ADA, TO)), uint(5n)])])],
    [uint(2n), uint(1n)],
    ...(o.more ?? []).map(([key, value]): [Uint8Array, Uint8Array] => [uint(BigInt(key)), value]),
  ])
  const txid = Buffer.from(hashOf(body)).toString('hex')
  const cbor = Buffer.concat([
    Buffer.from([0x84]),
    body,
    map([]),
    Buffer.from([o.invalid ? 0xf4 : 0xf5, 0xf6]),
  ]).toString('hex')
  const answers: Record<string, unknown> = {
    [`/txs/${txid}/utxos`]: { inputs: o.inputs, outputs: [] },
    [`/txs/${txid}/cbor`]: { cbor },
  }
  return {
    txid,
    client: new CardanoClient(ADA, endpoint, async (url) =>
      Response.json(answers[url.replace('http://node', '')] ?? {}),
    ),
  }
}
const spends = (address: unknown, more = {}) => ({
  address,
  collateral: false,
  reference: false,
  ...more,
})

test('the senders of a Cardano payment include inputs, withdrawn rewards and refunded deposits', async () => {
  const inputs = [
    spends(addressAt(PATH)),
    spends(addressAt(CHANGE)),
    spends(addressAt(PATH)),
    spends('addr1reference', { reference: true }),
    spends('addr1collateral', { collateral: true }),
  ]
  const reward = byteString(Buffer.from(`e1${STAKE_KEY}`, 'hex'))
  const key = array([uint(0n), byteString(Buffer.from(STAKE_KEY, 'hex'))])
  const of = (o: Parameters<typeof cardano>[0]) => {
    const { client, txid } = cardano(o)
    return client.senders(txid)
  }
  const both = [addressAt(PATH), addressAt(CHANGE)]
  assert.deepEqual(await of({ inputs }), { addresses: both, complete: true })
  assert.deepEqual(await of({ inputs, more: [[5, map([[reward, uint(9n)]])]] }), {
    addresses: [...both, STAKE],
    complete: true,
  })
  assert.deepEqual(await of({ inputs, more: [[4, array([array([uint(1n), key])])]] }), {
    addresses: [...both, STAKE],
    complete: true,
  })
  assert.deepEqual(
    await of({ inputs, more: [[4, array([array([uint(8n), key, uint(2_000_000n)])])]] }),
    {
      addresses: [...both, STAKE],
      complete: true,
    },
  )
  assert.deepEqual(
    await of({
      inputs,
      more: [[4, array([array([uint(2n), key, byteString(Buffer.alloc(28))])])]],
    }),
    { addresses: both, complete: true },
    'a delegation gives nothing back',
  )
  assert.deepEqual(
    await of({ inputs, more: [[4, array([array([uint(17n), key, uint(500_000_000n)])])]] }),
    { addresses: both, complete: false },
    'a representative’s deposit has no address',
  )
  assert.deepEqual(
    await of({ inputs, invalid: true }),
    { addresses: ['addr1collateral'], complete: true },
    'where its script failed the collateral pays',
  )
  assert.deepEqual(await of({ inputs: [...inputs, spends(null)] }), {
    addresses: both,
    complete: false,
  })
})
