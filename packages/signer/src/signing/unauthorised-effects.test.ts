import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { signing, utxo, xrp, type Network } from '@custody/chains'
import { signRequest, transactionId, type SignedRequest } from '@custody/request-auth'
import { hex, sha256hex } from '../canonical.ts'
import { ask, cancel } from '../../testing/amending.ts'
import { TestPolicy } from '../../testing/policy-cluster.ts'
import { TakenOver } from '../../testing/taken-over.ts'
import {
  BTC,
  btc,
  callerKey,
  ETH,
  eth,
  funding,
  pay,
  refused,
  registry,
  signed,
  SignerCluster,
  SINK_BTC,
  SINK_ETH,
  transfer,
  type Answer,
  type Caller,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * What a hostile platform, alone, with a caller's key or with one hostile node, can have three real
 * nodes sign beyond what callers requested and a policy allows.
 */
const GWEI = 1_000_000_000n
const ETHER = 10n ** 18n
const CAP = BigInt(ETH.fee_cap)
const DEAREST = CAP / 21_000n
const PAIRS = [
  [1, 2],
  [2, 3],
  [3, 1],
] as const
const EVERYTHING = {
  id: 'all',
  effect: 'allow',
  match: { action: ['transfer', 'refund', 'forward'], assets: 'any' },
}
const NOTHING = { id: 'nothing', effect: 'deny', match: {} }
const CHANGE = 0x7fffffff

let cluster: SignerCluster
before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
})
after(async () => {
  await cluster.stop()
})

const omnibus = [1, ETH.chain_index, 0]
const tank = [0, ETH.chain_index, 0]
async function wallet(rules: readonly unknown[] | null) {
  const workspace = await cluster.workspace()
  const caller = await workspace.caller(1)
  await workspace.caller(2)
  const policy = rules && new TestPolicy(cluster, workspace, rules, caller.api_key)
  await policy?.install()
  return { workspace, caller, policy: policy as TestPolicy }
}

async function paid(caller: Caller, more: Record<string, unknown> = {}) {
  const nonce = randomUUID()
  const body = { asset: 'ETH', amount: 1, destination_address: SINK_ETH, ...more }
  const request = await transfer(caller, body, { nonce })
  return { request, id: transactionId(caller.api_key, nonce) }
}

/** Creates a forwarding rule that all nodes see, and the request that deletes it. */
async function endedRule(caller: Caller, asset: string, to: string) {
  const nonce = randomUUID()
  const common = { apiKey: caller.api_key, privateKey: callerKey }
  const body = {
    asset,
    min_amount: '0.0001',
    destination_address: to,
    daily_cap: '0.001',
    expires_at: new Date(Date.now() + 3_600_000).toISOString(),
  }
  const uri = '/dac/v1/auto-forwarding'
  const rule = await signRequest({
    ...common,
    method: 'POST',
    uri,
    body: JSON.stringify(body),
    nonce,
  })
  for (const node of [1, 2, 3]) signed(await cluster.post(node, '/receipt', { request: rule }))
  const id = transactionId(caller.api_key, nonce)
  const end = await signRequest({
    ...common,
    method: 'DELETE',
    uri: `${uri}/${id}`,
    body: '{}',
  })
  return { rule, end }
}
const ended = (rule: SignedRequest, end: SignedRequest, id = randomUUID()) => ({
  kind: 'cancel',
  of: { kind: 'forward', id, rule },
  request: end,
})
const gas = (price: bigint) => ({ gas: '21000', max_fee_per_gas: price.toString() })

describe('cancellations of payments that no node has signed', () => {
  for (const mode of ['without a policy', 'under a rule that denies everything'] as const)
    test(`attack: the deletion of a rule cancels no invented forwards, ${mode}`, async () => {
      const rules = mode === 'without a policy' ? null : [EVERYTHING, NOTHING]
      const { workspace, caller } = await wallet(rules)
      const bitcoin = await endedRule(caller, 'BTC', SINK_BTC)
      const coins = funding(
        workspace,
        PAIRS.map((_, at) => ({ path: [1, BTC.chain_index, at], value: 5_000_000n })),
      )
      const back = Buffer.from(
        utxo.scriptOf(BTC, workspace.address(BTC, [1, BTC.chain_index, CHANGE])),
      )
      const ether = await endedRule(caller, 'ETH', SINK_ETH)
      const toItself = eth(omnibus, {
        to: workspace.address(ETH, omnibus),
        maxFeePerGas: DEAREST,
      })
      for (const [at, pair] of PAIRS.entries()) {
        const spent = btc(workspace, {
          inputs: [{ funding: coins, output: at, path: [1, BTC.chain_index, at] }],
          payTo: back,
          amount: 4_000_000n,
        })
        const { rule, end } = bitcoin
        refused(await workspace.sign(ended(rule, end), spent, pair), 'NOTHING_TO_CANCEL', 14)
        const cancels = ended(ether.rule, ether.end)
        refused(await workspace.sign(cancels, toItself, pair), 'NOTHING_TO_CANCEL', 14)
        const fuel = { kind: 'fuel', for: cancels, ...gas(DEAREST) }
        const given = eth(tank, { to: workspace.address(ETH, omnibus), value: CAP })
        refused(await workspace.sign(fuel, given, pair), 'NOTHING_TO_CANCEL', 14)
      }
    })

  test('attack: a payment that the policy denies is not cancelled at a fee either', async () => {
    const { workspace, caller, policy } = await wallet([EVERYTHING, NOTHING])
    const { request, id } = await paid(caller)
    const by = await ask(caller, id, 'cancel')
    const sent = eth(omnibus, { value: ETHER })
    const back = eth(omnibus, { to: workspace.address(ETH, omnibus), maxFeePerGas: DEAREST })
    const attempts = async () => {
      for (const pair of PAIRS) {
        assert.match((await workspace.sign(pay(request), sent, pair)).body.error, /^POLICY_/)
        refused(await workspace.sign(cancel(request, by), back, pair), 'NOTHING_TO_CANCEL', 14)
      }
    }
    await attempts()
    for (const node of [1, 2, 3]) signed(await policy.present(node, policy.stop('carol')))
    await attempts()
  })

  test('a node that did not sign a payment cancels it if the order contains its signatures', async () => {
    const { workspace, caller } = await wallet(null)
    const { request, id } = await paid(caller)
    const sent = eth(omnibus, { value: ETHER })
    const { signed: first } = (await workspace.sign(pay(request), sent, [1, 2])).body
    const by = await ask(caller, id, 'cancel')
    const back = eth(omnibus, {
      to: workspace.address(ETH, omnibus),
      maxFeePerGas: (5n * GWEI) / 2n,
    })
    const other = await paid(caller, { amount: 2 })
    const larger = eth(omnibus, { value: 2n * ETHER, nonce: 1 })
    const { signed: second } = (await workspace.sign(pay(other.request), larger, [1, 2])).body
    const replaces = (unsigned: object, raw: string) => ({
      ...cancel(request, by),
      replaces: [{ unsigned, signed: raw }],
    })
    refused(await workspace.sign(cancel(request, by), back, [1, 3]), 'NOTHING_TO_CANCEL', 14)
    const wrong = replaces(larger, second.raw)
    refused(await workspace.sign(wrong, back, [1, 3]), 'AMOUNT_MISMATCH', 7)
    const unsigned = replaces(sent, second.raw)
    refused(await workspace.sign(unsigned, back, [1, 3]), 'SHAPE', 7)
    signed(await workspace.sign(replaces(sent, first.raw), back, [1, 3]))
  })

  test('attack: a sweep to the payee is not a payment, whose cancellation may cost a quarter more', async () => {
    const { workspace, caller } = await wallet(null)
    const own = workspace.address(ETH, omnibus)
    const { request, id } = await paid(caller, { destination_address: own })
    signed(await workspace.sign(pay(request), eth(omnibus, { to: own, value: ETHER })))
    const deposit = [1, ETH.chain_index, 7]
    const dear = eth(deposit, { to: own, value: ETHER, maxFeePerGas: 100n * GWEI })
    const purpose = { kind: 'sweep', sub_account: 1, asset: 'ETH', address_index: 7 }
    const swept = await workspace.sign(purpose, dear)
    signed(swept)
    const by = {
      ...cancel(request, await ask(caller, id, 'cancel')),
      replaces: [{ unsigned: dear, signed: swept.body.signed.raw }],
    }
    const back = eth(omnibus, { to: own, maxFeePerGas: 3n * GWEI })
    refused(await workspace.sign(by, back), 'FOREIGN_PATH', 8)
  })

  test('attack: a cancellation that leaves an input of its payment unspent is refused', async () => {
    const { workspace, caller } = await wallet(null)
    const paths = [0, 1].map((at) => [1, BTC.chain_index, at])
    const coins = funding(
      workspace,
      paths.map((path) => ({ path, value: 100_000n })),
    )
    const inputs = paths.map((path, output) => ({ funding: coins, output, path }))
    const { request, id } = await paid(caller, {
      asset: 'BTC',
      amount: '0.00199',
      destination_address: SINK_BTC,
    })
    signed(await workspace.sign(pay(request), btc(workspace, { inputs, amount: 199_000n })))
    const by = await ask(caller, id, 'cancel')
    const payTo = Buffer.from(
      utxo.scriptOf(BTC, workspace.address(BTC, [1, BTC.chain_index, CHANGE])),
    )
    const back = (spent: typeof inputs, fee: bigint) =>
      btc(workspace, { inputs: spent, payTo, amount: 100_000n * BigInt(spent.length) - fee })
    for (const spent of [inputs.slice(0, 1), inputs.slice(1)])
      refused(await workspace.sign(cancel(request, by), back(spent, 1250n)), 'NOT_EXCLUSIVE', 6)
    signed(await workspace.sign(cancel(request, by), back(inputs, 1250n)))
  })
})

describe('cancellations under a policy', () => {
  test('under a stop a signed payment is cancelled at a quarter more, and not for more', async () => {
    const { workspace, caller, policy } = await wallet([EVERYTHING])
    const { request, id } = await paid(caller)
    signed(await workspace.sign(pay(request), eth(omnibus, { value: ETHER })))
    for (const node of [1, 2, 3]) signed(await policy.present(node, policy.stop('carol')))
    const by = await ask(caller, id, 'cancel')
    const back = (price: bigint) =>
      eth(omnibus, { to: workspace.address(ETH, omnibus), maxFeePerGas: price })
    const quarter = (5n * GWEI) / 2n
    refused(await workspace.sign(cancel(request, by), back(quarter + 1n)), 'POLICY_STOPPED', 17)
    const fuel = (price: bigint) => ({ kind: 'fuel', for: cancel(request, by), ...gas(price) })
    const given = (value: bigint, nonce = 0) =>
      eth(tank, { to: workspace.address(ETH, omnibus), value, nonce })
    // The payment's own fee is at the address already.
    const difference = (21_000n * quarter * 12n) / 10n - 42_000n * GWEI
    refused(await workspace.sign(fuel(quarter), given(difference + 1n)), 'FUEL_TOO_LARGE', 11)
    signed(await workspace.sign(fuel(quarter), given(difference)))
    // Another cancellation of the same payment is not fuelled again.
    const again = { ...fuel(quarter), for: cancel(request, await ask(caller, id, 'cancel')) }
    refused(await workspace.sign(again, given(difference, 1)), 'NOT_EXCLUSIVE', 6)
    signed(await workspace.sign(cancel(request, by), back(quarter)))
    // A quarter more than the payment, not than the cancellation before.
    const dearer = cancel(request, await ask(caller, id, 'cancel'))
    refused(await workspace.sign(dearer, back((quarter * 5n) / 4n)), 'POLICY_STOPPED', 17)
  })

  test('attack: fees count in a window, although a gas tank may pay them', async () => {
    const windows = [{ name: 'day', hours: 24, per: 'sub_account', max: { ETH: '0.25' } }]
    const { workspace, caller } = await wallet([{ ...EVERYTHING, windows }])
    const wei = { amount: '0.000000000000000001' }
    let nonce = 0
    for (let attempt = 0; attempt < 6; attempt++) {
      const { request } = await paid(caller, wei)
      const unsigned = eth(omnibus, { value: 1n, nonce, maxFeePerGas: DEAREST })
      const answer = await workspace.sign(pay(request), unsigned, PAIRS[attempt % 3])
      if (answer.status === 200) nonce++
      else refused(answer, 'POLICY_WINDOW', 17)
    }
    // Each reserves 0.125 ETH, a quarter more than its fee.
    assert.equal(nonce, 2)
  })
})

describe('rules about own addresses', () => {
  const CROSSING = { id: 'no-crossing', effect: 'deny', match: { to: { own: 'workspace' } } }

  test('attack: a crossing is denied whether or not the platform names the path, and with a tag', async () => {
    const { workspace, caller } = await wallet([EVERYTHING, CROSSING])
    const XRP = registry.network('XRP') as Network
    const place = (network: Network, sub: number) => [sub, network.chain_index, 0]
    const crossing = async (network: Network, tag: string | null) => {
      const to = workspace.address(network, place(network, 2))
      const asset = { asset: network.native_asset, destination_address: to }
      const { request } = await paid(caller, { ...asset, ...(tag ? { address_tag: tag } : {}) })
      const path = place(network, 1)
      const publicKey = workspace.publicKeyAt(path)
      const common = { to, tag, amount: 1_000_000n, fee: 10n, sequence: 9n, validUntil: 60 }
      const unsigned =
        network === ETH
          ? eth(path, { to, value: ETHER })
          : xrp.buildPayment(XRP, { ...common, path, publicKey })
      return (policy?: object): Promise<Answer> =>
        cluster.post(1, '/sign', {
          workspace: workspace.name,
          purpose: pay(request),
          unsigned,
          partner: 2,
          ...(policy ? { policy } : {}),
        })
    }
    for (const [network, tag] of [
      [ETH, null],
      [XRP, null],
      [XRP, '7'],
    ] as const) {
      const send = await crossing(network, tag)
      await decided(send)
      refused(await send(), 'POLICY_DENIED', 17)
      refused(await send({ to_path: place(network, 2) }), 'POLICY_DENIED', 17)
    }
    // A payment to another address passes without any path.
    const { request } = await paid(caller)
    const send = () => workspace.sign(pay(request), eth(omnibus, { value: ETHER }))
    await decided(send)
    signed(await send())
  })

  /** Repeats an order until the nodes have derived the own addresses of the workspace. */
  async function decided(send: () => Promise<Answer>): Promise<void> {
    for (;;) {
      const { body } = await send()
      if (body.error !== 'POLICY_BEHIND') return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
})

describe('a hostile node that leads a session', () => {
  test('attack: an order without a rule is charged to the windows of its honest partner', async () => {
    const windows = [{ name: 'day', hours: 24, per: 'sub_account', max: { ETH: '1.001' } }]
    const { workspace, caller, policy } = await wallet([{ ...EVERYTHING, windows }])
    const node1 = await TakenOver.start(cluster, 1)
    try {
      const told = {
        spending: {
          clock: Date.now(),
          generation: 0,
          known: { generation: 0, height: 0 },
          from: 0,
          to: 0,
          steps: [],
          pending: [],
        },
        policy: { position: { generation: 0, height: 0 }, hash: policy.hash },
      }
      const codes: string[] = []
      for (let nonce = 0; nonce < 8; nonce++) {
        const { request } = await paid(caller)
        const unsigned = eth(omnibus, { value: ETHER, nonce })
        const answer = await node1.say(
          2,
          '/peer/sign/open',
          {
            order: { workspace: workspace.name, purpose: pay(request), unsigned },
            fresh: randomBytes(32).toString('hex'),
            epoch: 0,
            ...told,
          },
          bindingOf(workspace, unsigned),
        )
        codes.push(answer.error ?? 'opened')
      }
      assert.deepEqual(codes, ['opened', ...Array<string>(7).fill('POLICY_WINDOW')])
    } finally {
      node1.stop()
    }
  })

  function bindingOf(workspace: Workspace, unsigned: ReturnType<typeof eth>) {
    const items = signing(registry, unsigned, workspace.publicKeyAt)
    return {
      session: '',
      round: 0,
      key: workspace.set.key_id as string,
      path: sha256hex(JSON.stringify(items.map((item) => item.path))),
      digest: sha256hex(JSON.stringify(items.map((item) => hex(item.message)))),
      participants: [1, 2],
    }
  }
})
