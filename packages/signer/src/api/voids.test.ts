import { transactionId } from '@custody/request-auth'
import assert from 'node:assert/strict'
import { createPublicKey, randomUUID, verify } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import {
  ETH,
  eth,
  SignerCluster,
  pay,
  SINK_ETH,
  transfer,
  type Answer,
  type Caller,
  type Workspace,
} from '../../testing/signer-cluster.ts'

let cluster: SignerCluster
let workspace: Workspace
const ONE = 10n ** 18n

before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  workspace = await cluster.workspace()
})
after(async () => {
  await cluster.stop()
})

function refused(answer: Answer, code: string, rule: number): void {
  assert.deepEqual(
    [answer.body?.error, answer.body?.rule],
    [code, rule],
    JSON.stringify(answer.body),
  )
}

/** Each test uses its own sub-account, and therefore its own address and nonces. */
let next = 100
async function fresh(): Promise<{ mine: Caller; path: number[] }> {
  const mine = await workspace.caller(next)
  return { mine, path: [next++, ETH.chain_index, 0] }
}

describe('rule 14: voids are final', () => {
  test('a void before signing is final, and covers the intent rather than one token', async () => {
    const { mine, path } = await fresh()
    const make = () =>
      transfer(mine, {
        asset: 'ETH',
        amount: 1,
        destination_address: SINK_ETH,
        sequence_id: 'void-1',
      })
    const request = await make()
    for (const node of [1, 2]) {
      const { status, body } = await cluster.post(node, '/void', { request })
      assert.equal(status, 200, JSON.stringify(body))
      assert.equal(body.voided, true)
      assert.deepEqual(body.signed_hashes, [])
    }
    for (const pair of [
      [1, 2],
      [1, 3],
      [3, 2],
    ] as const) {
      refused(
        await workspace.sign(pay(await make()), eth(path, { value: ONE }), pair),
        'VOIDED',
        14,
      )
    }
    await cluster.restartHere(2)
    refused(await workspace.sign(pay(request), eth(path, { value: ONE }), [2, 3]), 'VOIDED', 14)
    refused(
      await workspace.sign(
        { kind: 'fuel', for: pay(request), gas: '21000', max_fee_per_gas: '1' },
        eth([0, ETH.chain_index, 0], { value: 1n, to: workspace.address(ETH, path), nonce: 0 }),
      ),
      'VOIDED',
      14,
    )
  })
  test('after signing, a void is refused unless forced; then nothing else is signed', async () => {
    const { mine, path } = await fresh()
    const request = await transfer(mine, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
    const { body: signed } = await workspace.sign(pay(request), eth(path, { value: ONE, nonce: 0 }))
    const answer = await cluster.post(1, '/void', { request })
    refused(answer, 'ALREADY_SIGNED', 14)
    assert.equal(answer.body.hash, signed.signed.hash)
    const { nonce } = JSON.parse(Buffer.from(request.token.split('.')[1]!, 'base64url').toString())
    const forced = await cluster.post(1, '/void', {
      transaction_id: transactionId(mine.api_key, nonce),
      force: true,
    })
    assert.equal(forced.status, 200, JSON.stringify(forced.body))
    assert.deepEqual(forced.body.signed_hashes, [signed.signed.hash])
    refused(
      await workspace.sign(
        pay(request),
        eth(path, { value: ONE, nonce: 0, maxFeePerGas: 3_000_000_000n }),
      ),
      'VOIDED',
      14,
    )
    refused(await cluster.post(1, '/void', { transaction_id: randomUUID() }), 'UNKNOWN_INTENT', 4)
  })
  test('an unreadable request can be voided by its name, without hiding a signature', async () => {
    const { mine, path } = await fresh()
    const nameOf = (request: { token: string }) => {
      const { sub, nonce } = JSON.parse(
        Buffer.from(request.token.split('.')[1]!, 'base64url').toString(),
      )
      return { name: { api_key: sub, nonce } }
    }
    const request = await transfer(mine, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
    refused(
      await cluster.post(1, '/void', {
        request: { ...request, body: `${request.body}${' '.repeat(65_536)}` },
      }),
      'BAD_ORDER',
      0,
    )
    for (const node of [1, 2]) {
      const { status, body } = await cluster.post(node, '/void', nameOf(request))
      assert.equal(status, 200, JSON.stringify(body))
      assert.equal(isSigned(body), true)
      assert.match(body.record.intent, /^\["request",/)
    }
    refused(
      await workspace.sign(pay(request), eth(path, { value: ONE, nonce: 0 }), [3, 1]),
      'VOIDED',
      14,
    )
    const paid = await transfer(mine, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
    const { body } = await workspace.sign(pay(paid), eth(path, { value: ONE, nonce: 0 }))
    const hidden = await cluster.post(1, '/void', nameOf(paid))
    refused(hidden, 'ALREADY_SIGNED', 14)
    assert.equal(hidden.body.hash, body.signed.hash)
  })
  /** The signed bytes as the README documents them. */
  const isSigned = ({
    record,
    signature,
  }: {
    record: Record<string, unknown>
    signature: string
  }): boolean => {
    const { node, intent, transaction_id, rule, height, voided_at, signed, unfinished } = record
    const text = `custody/void/v2\n${JSON.stringify({ node, intent, transaction_id, rule, height, voided_at, signed, unfinished })}`
    return verify(
      null,
      Buffer.from(text),
      createPublicKey(cluster.peers.nodes[Number(node) - 1]!.identity),
      Buffer.from(signature, 'hex'),
    )
  }
  test('forced voids after a withheld signature state that signature, so they prove no failure', async () => {
    const { mine, path } = await fresh()
    const request = await transfer(mine, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
    const { body: withheld } = await workspace.sign(
      pay(request),
      eth(path, { value: ONE, nonce: 0 }),
      [1, 2],
    )
    const voids = await Promise.all(
      [1, 2, 3].map(
        async (node) => (await cluster.post(node, '/void', { request, force: true })).body,
      ),
    )
    assert.deepEqual(
      voids.map((each) => isSigned(each)),
      [true, true, true],
    )
    assert.deepEqual(
      voids.map(({ record }) => record.signed),
      [[withheld.signed.hash], [withheld.signed.hash], []],
    )
    assert.ok(
      !isSigned({ ...voids[0], record: { ...voids[0].record, signed: [] } }),
      'what was signed can be left out',
    )
  })
  test('a void states that no signature exists; gas funding does not count as a payment', async () => {
    const second = await cluster.workspace()
    const mine = await second.caller(1)
    const request = await transfer(mine, {
      asset: 'USDT_ETH',
      amount: 5,
      destination_address: SINK_ETH,
    })
    const fuel = await second.sign(
      { kind: 'fuel', for: pay(request), gas: '65000', max_fee_per_gas: '2000000000' },
      eth([0, ETH.chain_index, 0], {
        value: 1n,
        to: second.address(ETH, [1, ETH.chain_index, 0]),
        nonce: 0,
      }),
      [1, 2],
    )
    assert.equal(fuel.status, 200, JSON.stringify(fuel.body))
    const { body } = await cluster.post(1, '/void', { request, force: true })
    assert.deepEqual(
      [
        isSigned(body),
        body.signed_hashes,
        body.record.signed,
        body.record.unfinished,
        body.record.rule,
      ],
      [true, [fuel.body.signed.hash], [], 0, null],
    )
  })
  test('a void of the request under another method or query hides no signature', async () => {
    const { mine, path } = await fresh()
    // A client that does not sign the method; with the claim, another method is not authentic.
    const payment = { asset: 'ETH', amount: 1, destination_address: SINK_ETH }
    const request = await transfer(mine, payment, { claims: { method: undefined } })
    const { body: withheld } = await workspace.sign(
      pay(request),
      eth(path, { value: ONE, nonce: 0 }),
      [1, 2],
    )
    for (const spelt of [
      { ...request, method: 'GET' },
      { ...request, uri: `${request.uri}?a=1` },
    ]) {
      for (const node of [1, 2]) {
        refused(await cluster.post(node, '/void', { request: spelt }), 'ALREADY_SIGNED', 14)
      }
    }
    const { body } = await cluster.post(1, '/void', {
      request: { ...request, method: 'GET' },
      force: true,
    })
    assert.deepEqual([isSigned(body), body.record.signed], [true, [withheld.signed.hash]])
  })
  test("a void of an invented forward with a payment's id differs from a void of the payment", async () => {
    const { mine, path } = await fresh()
    const request = await transfer(mine, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
    const id = transactionId(
      mine.api_key,
      JSON.parse(Buffer.from(request.token.split('.')[1]!, 'base64url').toString()).nonce,
    )
    const rule = randomUUID()
    for (const node of [1, 2]) {
      const { body } = await cluster.post(node, '/void', { forward: { rule, id } })
      assert.deepEqual(
        [isSigned(body), body.record.transaction_id, body.record.rule],
        [true, id, rule],
      )
    }
    assert.equal(
      (await workspace.sign(pay(request), eth(path, { value: ONE, nonce: 0 }))).status,
      200,
      'the payment itself was never voided',
    )
  })
})
