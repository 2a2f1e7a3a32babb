import { readFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { publicKeysBelow, solana, type Asset, type Curve, type Network } from '@custody/chains'
import { interleaved, median, report } from '../../../testing/figures.ts'
import {
  complete,
  keygenSessions,
  openVaults,
  signSessions,
} from '../../threshold/testing/helpers.ts'
import { SignerCluster, pay, registry, transfer, Workspace } from '../testing/signer-cluster.ts'
import { ethPayments, good, inFlight, PAIRS, type Item } from './flights.ts'
import { measureLargeParents } from './large-parents.ts'
import { measureNeighbour } from './neighbour.ts'
import { GovernedAccount, type AccountKind, type ApprovedItem } from './governed.ts'

/**
 * Measures signatures through three real nodes, and with the bare engine, whose two parties run in
 * this process: `node bench/sign.bench.ts [signatures per round] [rounds]`. Requests are signed
 * before the measurement begins. Processor time is compared, because the nodes use as many
 * processors as are available.
 */
const [count, rounds] = [Number(process.argv[2] ?? 32), Number(process.argv[3] ?? 3)]
/** Rounds of the comparison with a policy: its difference is smaller than that of two rounds. */
const GOVERNED_ROUNDS = 3 * rounds
const RUN = 16
/** Number of concurrent signatures, each of its own account. */
const IN_FLIGHT = 8
const SOL = registry.network('SOL') as Network
const SOL_ASSET = registry.asset('SOL') as Asset
const SOL_SINK = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM'
const BLOCKHASH = 'CxKXFd1BtnMt1r8ugTnxoAcfs2vYNj3AyxuCU7p4mN5V'

const cluster = await SignerCluster.start({ where: 'apart' })
/** Returns the processor time in milliseconds that the three nodes have used. */
const nodesMs = (): number =>
  [...cluster.processes.values()].reduce((sum, { pid }) => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return sum + (Number(fields[11]) + Number(fields[12])) * 10
  }, 0)

/**
 * Measures one way to sign: processor milliseconds per signature, and the waiting time of a caller.
 */
async function timed(
  work: () => Promise<number[]>,
  cpuMs: () => number,
  latencies: number[],
  made = count,
): Promise<number> {
  const before = cpuMs()
  const each = await work()
  latencies.push(...each)
  return (cpuMs() - before) / made
}

async function measure(curve: Curve): Promise<void> {
  const key = await cluster.key(1, `bench-${curve}`, curve)
  good(key)
  const workspace = new Workspace(cluster, `bench-${curve}`, key.body)
  const at = publicKeysBelow({ curve, ...workspace.key })
  let next = 1
  /** Creates payments of a new account, with sequential nonces if the chain has them. */
  const items = async (): Promise<Item[]> => {
    const caller = await workspace.caller(next++)
    if (curve === 'secp256k1') return ethPayments(caller, count)
    const path = [caller.sub_account, SOL.chain_index, 0]
    return Promise.all(
      Array.from({ length: count }, async () => ({
        purpose: pay(
          await transfer(caller, { asset: 'SOL', amount: 1, destination_address: SOL_SINK }),
        ),
        unsigned: solana.buildTransfer(SOL, {
          asset: SOL_ASSET,
          to: SOL_SINK,
          amount: 10n ** 9n,
          blockhash: BLOCKHASH,
          unitPrice: 1000n,
          path,
          publicKey: at(path),
        }),
      })),
    )
  }
  const one = async (item: Item, turn: number): Promise<number> => {
    const begun = performance.now()
    // An account keeps its pair, as in the platform; without nonces this makes no difference.
    good(
      await workspace.sign(
        item.purpose,
        item.unsigned,
        PAIRS[(curve === 'secp256k1' ? next : turn) % 3],
      ),
    )
    return performance.now() - begun
  }
  /** Creates `IN_FLIGHT` accounts, each with its pair and its part of the payments. */
  const flights = async (): Promise<Item[][]> => {
    const lists: Item[][] = []
    for (let at = 0; at < IN_FLIGHT; at++)
      lists.push((await items()).slice(0, Math.ceil(count / IN_FLIGHT)))
    return lists
  }
  const atOnce = (lists: readonly Item[][]) => async () => {
    const { perSecond, waitsMs } = await inFlight(workspace, lists)
    perSecondAtOnce.push(perSecond)
    return waitsMs
  }
  const inTurn = (list: readonly Item[]) => async () => {
    const times: number[] = []
    for (const [turn, item] of list.entries()) times.push(await one(item, turn))
    return times
  }
  const inRuns = (list: readonly Item[]) => async () => {
    const times: number[] = []
    for (let from = 0; from < list.length; from += RUN) {
      const begun = performance.now()
      const [first, partner] = PAIRS[next % 3] as (typeof PAIRS)[number]
      good(
        await cluster.post(first, '/sign-run', {
          workspace: workspace.name,
          partner,
          run: list.slice(from, from + RUN),
        }),
      )
      times.push(performance.now() - begun)
    }
    return times
  }
  const vaults = await openVaults()
  const keys = await complete(keygenSessions(vaults, curve))
  const bare = async () => {
    const times: number[] = []
    for (let turn = 0; turn < count; turn++) {
      const begun = performance.now()
      await complete(signSessions(vaults, keys, [1, 2], [1, 2, 0], new Uint8Array(randomBytes(32))))
      times.push(performance.now() - begun)
    }
    return times
  }
  const ownMs = () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
  const waits = {
    bare: [] as number[],
    nodes: [] as number[],
    runs: [] as number[],
    atOnce: [] as number[],
  }
  const perSecondAtOnce: number[] = []
  const lists = { nodes: [] as Item[][], runs: [] as Item[][], atOnce: [] as Item[][][] }
  // The first round of each warms the nodes up.
  for (let round = 0; round <= rounds; round++) {
    lists.nodes.push(await items())
    if (curve === 'secp256k1') lists.runs.push(await items())
    if (round > 0) lists.atOnce.push(await flights())
  }
  await bare()
  for (const list of [...lists.nodes.splice(0, 1), ...lists.runs.splice(0, 1)]) await inTurn(list)()
  const cost = await interleaved(rounds, {
    bare: () => timed(bare, ownMs, waits.bare),
    nodes: () => timed(inTurn(lists.nodes.pop() as Item[]), nodesMs, waits.nodes),
    atOnce: () =>
      timed(
        atOnce(lists.atOnce.pop() as Item[][]),
        nodesMs,
        waits.atOnce,
        Math.ceil(count / IN_FLIGHT) * IN_FLIGHT,
      ),
    ...(curve === 'secp256k1'
      ? { runs: () => timed(inRuns(lists.runs.pop() as Item[]), nodesMs, waits.runs) }
      : {}),
  } as Record<'bare' | 'nodes' | 'runs' | 'atOnce', () => Promise<number>>)
  const perSecond = (ms: number) => 1000 / ms
  report({
    name: `${curve}: signatures one by one, a processor second`,
    unit: '/s',
    value: perSecond(cost.nodes),
    floor: perSecond(cost.bare),
    target: { atLeast: 0.7 },
    note: 'floor: the bare engine, both parties in one process',
  })
  report({
    name: `${curve}: ${IN_FLIGHT} signatures in flight, a processor second`,
    unit: '/s',
    value: perSecond(cost.atOnce),
    floor: perSecond(cost.bare),
    target: { atLeast: 0.7 },
    note: `${median(perSecondAtOnce).toFixed(0)} signatures a second, p50 ${median(waits.atOnce).toFixed(0)} ms`,
  })
  if (curve === 'secp256k1') {
    report({
      name: `${curve}: signatures in runs of ${RUN}, a processor second`,
      unit: '/s',
      value: perSecond(cost.runs),
      floor: perSecond(cost.bare),
      target: { atLeast: 0.7 },
      note: `a run takes ${median(waits.runs).toFixed(0)} ms`,
    })
  }
  report({
    name: `${curve}: a signature, p50`,
    unit: 'ms',
    value: median(waits.nodes),
    floor: median(waits.bare),
    target: { atMost: 2 },
  })
}

/** Measures what a policy costs: the same payments with one and without. */
async function measureGoverned(): Promise<void> {
  const account = async (kind: AccountKind): Promise<GovernedAccount> => {
    const name = `bench-${kind}`
    const key = await cluster.key(1, name, 'secp256k1')
    good(key)
    return GovernedAccount.start(cluster, new Workspace(cluster, name, key.body), kind)
  }
  const kinds = ['plain', 'governed', 'presented'] as const
  const of = <T>(each: () => T): Record<AccountKind, T> => ({
    plain: each(),
    governed: each(),
    presented: each(),
  })
  const lists = of<ApprovedItem[][]>(() => [])
  const waits = of<number[]>(() => [])
  const accounts = new Map<AccountKind, GovernedAccount>()
  for (const kind of kinds) accounts.set(kind, await account(kind))
  // The first round of each warms the nodes up.
  for (let round = 0; round <= GOVERNED_ROUNDS; round++)
    for (const kind of kinds) lists[kind].push(await accounts.get(kind)!.items(count))
  const work = (kind: AccountKind) => async (): Promise<number[]> => {
    const times: number[] = []
    for (const item of lists[kind].shift() as ApprovedItem[]) {
      const begun = performance.now()
      await accounts.get(kind)!.sign(item)
      times.push(performance.now() - begun)
    }
    return times
  }
  for (const kind of kinds) await work(kind)()
  const cost = await interleaved(GOVERNED_ROUNDS, {
    plain: () => timed(work('plain'), nodesMs, waits.plain),
    governed: () => timed(work('governed'), nodesMs, waits.governed),
    presented: () => timed(work('presented'), nodesMs, waits.presented),
  })
  const rows = {
    governed: 'with 20 rules, 2 windows and 2 approvals, a processor second',
    presented: 'the same, approvals judged when they were given',
  }
  for (const [kind, name] of Object.entries(rows) as ['governed' | 'presented', string][])
    report({
      name,
      unit: '/s',
      value: 1000 / cost[kind],
      floor: 1000 / cost.plain,
      target: { atLeast: 0.95 },
      note: `floor: without a policy; p50 ${median(waits[kind]).toFixed(0)} and ${median(waits.plain).toFixed(0)} ms`,
    })
}

try {
  await measureGoverned()
  await measureNeighbour(cluster, count, rounds)
  await measureLargeParents(cluster, nodesMs, rounds)
  await measure('secp256k1')
  await measure('ed25519')
} finally {
  await cluster.stop()
}
