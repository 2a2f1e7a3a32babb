import { xrp, type Network } from '@custody/chains'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  BTC,
  btc,
  ETH,
  eth,
  funding,
  registry,
  SINK_BTC,
  SINK_ETH,
  usdt,
} from '../../testing/signer-cluster.ts'
import {
  addressOf,
  asksPay,
  Bench,
  IAT,
  KEYS,
  staked,
  TRX,
  trx,
  WALLET,
  WORKSPACE,
} from '../../testing/judging.ts'

/** Rule 16 at one node: only orders of its own operator are executed. */
const ONE = 10n ** 18n
const FRIEND = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'
const omnibus = [1, ETH.chain_index, 0]

test('a node that was opened for a recovery signs only what its operator ordered', async (t) => {
  const bench = new Bench()
  t.after(() => {
    bench.close()
  })
  const { request } = await asksPay(bench.caller(1))
  const fee = 21_000n * 2_000_000_000n
  const ordered = {
    order: 'r',
    workspace: 'w',
    network: 'ETH',
    to_address: SINK_ETH,
    tag: null,
    fee_max: fee.toString(),
    expires_at: IAT,
  }
  const give = (id: string, more: object = {}) =>
    bench.store.append('recover', { ...ordered, order: id, ...more })
  const recover = (
    unsigned = eth(omnibus, { value: 1n }),
    more: object = {},
    workspace = WORKSPACE,
  ) => bench.codeOf({ kind: 'recover', order: 'r', ...more }, unsigned, workspace)
  assert.equal(
    await recover(),
    'ACTION_NOT_ALLOWED: A node that serves a platform signs no recovery',
  )
  bench.store.append('recovering', { made_at: 1 })
  assert.equal(
    await bench.codeOf({ kind: 'pay', request }, eth(omnibus, { value: ONE })),
    'RESTORING: This node was opened for a recovery and signs no other transactions',
  )
  const none = 'ORDER_UNKNOWN: This node has no such order from its operator'
  assert.equal(await recover(), none)
  give('other', { workspace: 'v' })
  give('elsewhere', { network: 'BASE' })
  assert.equal(await recover(), none)
  give('r')
  assert.equal(
    await recover(undefined, { order: 'x' }),
    "ORDER_UNKNOWN: This node's operator ordered another destination or fee for this network",
  )
  assert.equal(
    await recover(undefined, { order: 'other' }),
    'WORKSPACE_MISMATCH: The order belongs to another workspace',
  )
  for (const path of [
    [1, BTC.chain_index, 0],
    [1, ETH.chain_index],
    [1, ETH.chain_index, 0, 0],
  ]) {
    assert.equal(
      await recover(eth(path)),
      `FOREIGN_PATH: The path ${path.join('/')} does not belong to ETH`,
    )
  }
  assert.equal(
    await recover(eth([9, ETH.chain_index, 9], { value: 1n })),
    null,
    'any address of the workspace is emptied',
  )
  assert.equal(await recover(), null)
  assert.equal(
    await recover(eth(omnibus, { value: 1n, maxFeePerGas: 2_000_000_001n })),
    `FEE_CAP: The fee ${fee + 21_000n} is above the ${fee} that the operator allowed`,
  )
  assert.equal(
    await recover(eth(omnibus, { value: 1n, to: addressOf(ETH, omnibus) })),
    "DESTINATION_MISMATCH: The transaction must pay the destination of the operator's order",
  )

  const own = [2, ETH.chain_index, 3]
  const to = addressOf(ETH, own)
  const not = "DESTINATION_MISMATCH: The transaction must pay the node's own address at that path"
  const more =
    'SHAPE: A payment to an own address must not exceed the maximum network fee of one transaction'
  const towards = (unsigned: ReturnType<typeof eth>, to_path = own) =>
    recover(unsigned, { to_path })
  assert.equal(await towards(eth(omnibus, { to, value: fee })), null)
  assert.equal(await towards(eth(omnibus, { to, value: fee + 1n })), more)
  assert.equal(
    await towards(usdt(omnibus, to, 1n)),
    'ASSET_MISMATCH: The transaction must move ETH, and moves USDT_ETH',
  )
  assert.equal(await towards(eth(omnibus, { value: 1n })), not)
  // A path of another chain is not accepted, even if an address could be derived from it on this
  // chain.
  const foreign = [2, TRX.chain_index, 3]
  assert.equal(
    await towards(eth(omnibus, { to: addressOf(ETH, foreign), value: 1n }), foreign),
    not,
  )
  const path = (index: number) => [1, BTC.chain_index, index]
  const source = funding(WALLET, [{ path: path(0), value: 200_000n }])
  give('b', { network: 'BTC', to_address: SINK_BTC, fee_max: '1000' })
  const change = { path: path(0x7fffffff), value: 99_500n }
  const coins = (amount: bigint, changeOutput?: typeof change) =>
    btc(WALLET, {
      inputs: [{ funding: source, output: 0, path: path(0) }],
      amount,
      ...(changeOutput ? { change: changeOutput } : {}),
    })
  assert.equal(
    await recover(coins(100_000n, change), { order: 'b' }),
    'SHAPE: A recovery must have no change',
  )
  assert.equal(await recover(coins(199_000n), { order: 'b' }), null)
  give('s', { network: 'TRX', to_address: FRIEND, fee_max: '100000000' })
  const one = 'SHAPE: The transaction must make exactly one payment'
  assert.equal(
    await recover(staked([1, TRX.chain_index, 0], { kind: 'freeze' }), { order: 's' }),
    one,
  )
  assert.equal(await recover(trx([1, TRX.chain_index, 0], FRIEND, 5n), { order: 's' }), null)
  const [XRP, SINK] = [registry.network('XRP') as Network, 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh']
  const from = [1, XRP.chain_index, 0]
  const ledger = (address: string, tag: string | null) =>
    xrp.buildPayment(XRP, {
      to: address,
      tag,
      amount: 5n,
      fee: 10n,
      sequence: 91n,
      validUntil: 200,
      path: from,
      publicKey: KEYS.secp256k1.publicKeyAt(from),
    })
  give('x', { network: 'XRP', to_address: SINK, fee_max: '100' })
  const [at, own2] = [[2, XRP.chain_index, 0], addressOf(XRP, [2, XRP.chain_index, 0])]
  assert.equal(
    await recover(ledger(SINK, '5'), { order: 'x' }),
    'TAG_MISMATCH: The tag of the transaction differs from the approved tag',
  )
  assert.equal(
    await recover(ledger(own2, '5'), { order: 'x', to_path: at }),
    'TAG_MISMATCH: The tag of the transaction differs from the approved tag',
  )
  assert.equal(await recover(ledger(own2, null), { order: 'x', to_path: at }), null)
  const cap = BigInt(ETH.fee_cap)
  give('dear', { fee_max: (2n * cap).toString() })
  const dear = cap / 21_000n + 1n
  assert.equal(
    await recover(eth(omnibus, { value: 1n, maxFeePerGas: dear }), { order: 'dear' }),
    `FEE_CAP: The fee ${21_000n * dear} is above the cap ${cap}`,
  )
  bench.now++
  assert.equal(await recover(), 'ORDER_EXPIRED: The order has expired')
})
