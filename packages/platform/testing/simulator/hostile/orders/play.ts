import { decode } from '@custody/chains'
import { callerPem, registry } from '../../../../../signer/testing/signer-cluster.ts'
import { WholeKeys } from '../../../../../signer/testing/whole-keys.ts'
import { NodeRefused, NodeUnavailable } from '../../../../src/core/signing/nodes.ts'
import { InProcessNodes } from '../../../in-process-nodes.ts'
import { GovernedNodes } from '../../policy/governed-nodes.ts'
import { SeededRandom } from '../../seeded-random.ts'
import type { Hostile } from '../report.ts'
import { CLOCK_MS, Ledgers } from './ledgers.ts'
import { OrderGenerator, type GeneratedOrder } from './orders.ts'
import { execute, judge, judgeToken, readBalances, type Balances, type Signed } from './oracle.ts'
import { Callers } from './requests.ts'
import { drawScenario, firstDocument, stopOf, type Scenario } from './scenario.ts'
import { SUB_ACCOUNTS, THIEF, Wallets } from './wallets.ts'

const WORKSPACE = 'acme'
const ORDERS = 120
/** Orders before a stop that begins late. */
const EARLY = 25
const BUDGET_FEE_CAPS = 4
/** Largest sum that a window allows, in parts of a fee cap. */
const WINDOW_CAPS = 2n
/** Foreign addresses of a run; no caller requests a payment to the last. */
const SINKS = [1, 2, 3, THIEF] as const

let ledgers: Promise<Ledgers> | null = null

/** Ends the local chains of this process. */
export async function closeLedgers(): Promise<void> {
  ;(await ledgers)?.close()
  ledgers = null
}

/**
 * Simulates a platform that sends generated orders of every purpose to three nodes, and a block
 * builder that includes what costs the workspace most. The oracle compares balances on a local chain
 * with what callers requested and the policy allows.
 */
export async function playOrders(
  seed: number,
  draws: readonly number[] | null = null,
  options: Partial<Scenario> = {},
): Promise<Hostile> {
  ledgers ??= Ledgers.start()
  const run = new OrdersRun(seed, new SeededRandom(seed, draws), await ledgers, options)
  try {
    return await run.play()
  } finally {
    run.nodes.close()
  }
}

class OrdersRun {
  readonly nodes: InProcessNodes
  readonly #random: SeededRandom
  readonly #ledgers: Ledgers
  readonly #scenario: Scenario
  readonly #governed: GovernedNodes | null
  readonly #keys: WholeKeys
  readonly #callers: Callers
  readonly #wallets: Wallets
  readonly #generator: OrderGenerator
  readonly #signed: Signed[] = []
  /** Tokens of the requests that signed orders contain. */
  readonly #named = new Set<string>()
  readonly #refusals = new Map<string, number>()
  readonly #faults = new Map<string, number>()
  readonly #asks: string[] = []
  #isStopped = false

  constructor(seed: number, random: SeededRandom, ledgers: Ledgers, options: Partial<Scenario>) {
    this.#random = random
    this.#ledgers = ledgers
    const scenario = { ...drawScenario(random), ...options }
    const { mode } = scenario
    this.#scenario = {
      ...scenario,
      isLeaderHostile: scenario.isLeaderHostile && mode !== 'none',
      isStoppedLate: scenario.isStoppedLate && mode === 'stop',
    }
    this.#keys = new WholeKeys(1_000_000 + seed)
    this.#governed = mode === 'none' ? null : new GovernedNodes(() => CLOCK_MS)
    this.nodes = new InProcessNodes(3, () => CLOCK_MS, this.#keys, this.#governed, BUDGET_FEE_CAPS)
    this.#callers = new Callers(seed)
    for (const [sub, apiKey] of this.#callers.apiKeys)
      this.nodes.enrol({
        api_key: apiKey,
        public_key_pem: callerPem,
        role: 'full',
        workspace: WORKSPACE,
        sub_account: sub,
      })
    this.#wallets = new Wallets(
      this.#scenario,
      this.#keys,
      new WholeKeys(2_000_000 + seed),
      ledgers,
    )
    this.#generator = new OrderGenerator(random, this.#wallets, this.#callers, mode !== 'own')
  }

  get #cap(): bigint {
    return BigInt(this.#wallets.network.fee_cap)
  }

  get #sinks(): string[] {
    return SINKS.map((at) => this.#wallets.sink(at))
  }

  async play(): Promise<Hostile> {
    const { code } = this.#scenario
    const ledger = this.#ledgers.of(code)
    await this.#wallets.fund()
    // An account of some networks must exist before it can receive a small payment.
    if (code !== 'BTC' && code !== 'ETH')
      for (const sink of this.#sinks) await ledger.fund(sink, '100')
    await this.#install()
    if (this.#scenario.mode === 'stop' && !this.#scenario.isStoppedLate) await this.#stop()
    const before = await readBalances(ledger, this.#wallets, this.#sinks)
    const tokensBefore = await this.#tokens()
    for (let at = 0; at < 6; at++) await this.#generator.request()
    for (let at = 0; at < ORDERS; at++) {
      if (this.#scenario.isStoppedLate && at === EARLY) await this.#stop()
      if (this.#random.below(8) === 0) await this.#generator.request()
      await this.#sign(this.#generator.draw())
    }
    const own = new Set([0, ...SUB_ACCOUNTS].flatMap((sub) => this.#wallets.owned(sub)))
    const included = await execute(ledger, this.#signed, own)
    const after = await readBalances(ledger, this.#wallets, this.#sinks)
    const tokensAfter = await this.#tokens()
    const judged = {
      scenario: this.#scenario,
      native: this.#wallets.network.native_asset,
      requests: this.#callers.signed.filter(({ request }) => this.#named.has(request.token)),
      signed: this.#signed,
      cap: this.#cap,
      window: WINDOW_CAPS * this.#cap,
      budgetFeeCaps: BUDGET_FEE_CAPS,
    }
    const { mode, token, isLeaderHostile } = this.#scenario
    const problems = judge(judged, before, after)
    if (mode === 'none' && included === 0)
      problems.push('no signed transaction was included, so balances show nothing')
    if (token !== null && tokensBefore !== null && tokensAfter !== null)
      problems.push(...judgeToken(judged, token, tokensBefore, tokensAfter))
    const name = `${code}${token === null ? '' : ` and ${token}`} ${mode}${isLeaderHostile ? ', node 1 hostile' : ''}`
    this.#faults.set(name, 1)
    this.#asks.push(`${included} of ${this.#signed.length} signed transactions were included`)
    return {
      failure: problems.length > 0 ? `${name}: ${problems.join('\n')}` : null,
      draws: this.#random.draws,
      count: this.#asks.length,
      signed: this.#signed.length,
      refusals: this.#refusals,
      faults: this.#faults,
      asks: this.#asks,
    }
  }

  async #tokens(): Promise<Balances | null> {
    const { code, token } = this.#scenario
    if (token === null) return null
    return readBalances(this.#ledgers.of(code), this.#wallets, this.#sinks, token)
  }

  async #install(): Promise<void> {
    if (!this.#governed) return
    const { mode } = this.#scenario
    const { native_asset: asset } = this.#wallets.network
    const window = this.#generator.textOf(WINDOW_CAPS * this.#cap)
    await this.#governed.install(
      firstDocument(mode, { asset, window }, { ...this.#place, apiKeys: this.#apiKeys }),
    )
    if (mode === 'own') await this.#governed.deriveOwn(WORKSPACE, this.#wallets.network.code)
  }

  get #apiKeys(): string[] {
    return [...this.#callers.apiKeys.values()]
  }
  get #place(): { workspace: string; nodes: string } {
    return { workspace: WORKSPACE, nodes: this.#governed!.nodes }
  }

  async #stop(): Promise<void> {
    this.#isStopped = true
    const item = { kind: 'statement', workspace: WORKSPACE, signed: stopOf(this.#place) }
    for (const node of [1, 2, 3]) await this.nodes.call(node, 'POST', '/policy/present', { item })
  }

  async #sign(orders: readonly GeneratedOrder[]): Promise<void> {
    if (orders.length === 0) return
    const { node, partner } = this.#drawPair()
    const run = orders.map(({ purpose, unsigned, policy }) => ({
      purpose,
      unsigned,
      ...(policy ? { policy } : {}),
    }))
    const at = this.#asks.push(`nodes ${node} and ${partner}: ${JSON.stringify(run)}`) - 1
    try {
      const isHostile = this.#scenario.isLeaderHostile && node === 1
      if (isHostile) await this.nodes.signAsHostileLeader(partner, WORKSPACE, run)
      else if (run.length > 1)
        await this.nodes.call(node, 'POST', '/sign-run', { workspace: WORKSPACE, partner, run })
      else
        await this.nodes.call(node, 'POST', '/sign', { workspace: WORKSPACE, partner, ...run[0] })
      this.#asks[at] += ' -> signed'
      for (const order of orders) this.#keep(order)
    } catch (error) {
      if (!(error instanceof NodeRefused) && !(error instanceof NodeUnavailable)) throw error
      const code =
        error instanceof NodeRefused
          ? String((error.body as { error?: unknown }).error)
          : String(error.code)
      this.#asks[at] += ` -> ${error instanceof NodeRefused ? JSON.stringify(error.body) : code}`
      this.#refusals.set(code, (this.#refusals.get(code) ?? 0) + 1)
    }
  }

  #drawPair(): { node: number; partner: number } {
    const node = 1 + this.#random.below(3)
    return { node, partner: 1 + ((node + this.#random.below(2)) % 3) }
  }

  #keep(order: GeneratedOrder): void {
    const { raw, hash } = this.nodes.signedWith(order.unsigned)
    for (const [, token] of JSON.stringify(order.purpose).matchAll(/"token":"([^"]+)"/g))
      this.#named.add(token as string)
    const { network } = order.unsigned
    const { curve } = this.#wallets.network
    const decoded = decode(registry, order.unsigned, this.#keys.at[curve])
    this.#signed.push({
      transaction: { network, raw, hash },
      decoded,
      isBeforeStop: this.#scenario.isStoppedLate && !this.#isStopped,
      from: order.unsigned.inputs[0]!.path[0]!,
    })
    this.#generator.noteSigned(order, raw)
  }
}
