import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHash } from 'node:crypto'
import { signRequest, transactionId } from '@custody/request-auth'
import { PRIVATE_KEY, PUBLIC_KEY } from '../caller-key.ts'
import { SeededRandom } from '../seeded-random.ts'
import { ATTACKS, type Attack } from './attacks.ts'
import { Chain } from './chain.ts'
import { ClusterKeys, NODES, WORKSPACE } from './cluster-keys.ts'
import { HonestNode, type SimulatedNode, type Surroundings } from './honest-node.ts'
import { HostileNode, type OfferedPayment } from './hostile-node.ts'
import { Network, NO_FAULTS } from './network.ts'
import { Oracle, type Problem } from './oracle.ts'
import { Platform } from './platform.ts'
import { firstDocument } from './policy-document.ts'
import { Signatures } from './signatures.ts'
import type { Planned } from './transfers.ts'
import { Process, VirtualClock } from './virtual-clock.ts'
import { amountOf, NETWORKS, SUB_ACCOUNT, Wallets, type Code } from './wallets.ts'

const START_MS = Date.UTC(2030, 0, 1)
/** Time with faults and new orders, and time afterwards in which everything must end. */
const FAULTY_MS = 8 * 60_000
const CALM_MS = 20 * 60_000
/** The same under a policy, until its window has room for the last payment. */
const GOVERNED_CALM_MS = 5 * 3600_000
const CHECK_MS = 300_000
/** Time in which the operators enter the policy. */
const SET_UP_MS = 10_000
const COINS = 12

/** What a run tests. */
export interface Options {
  /** Attacks of which a seed draws some; null: the third node is honest. */
  attacks: readonly Attack[] | null
  /** Whether a seed switches on all of them, instead of drawing some. */
  hasAllAttacks: boolean
  /** Whether callers cancel some of their payments; null: with every second seed. */
  hasCancellations: boolean | null
  /** Whether the workspace has a policy with a window; null: a sixth of the seeds. */
  isGoverned: boolean | null
}

const DEFAULTS: Options = {
  attacks: ATTACKS,
  hasAllAttacks: false,
  hasCancellations: null,
  isGoverned: null,
}

export interface ByzantineReport {
  failure: string | null
  problems: readonly Problem[]
  draws: readonly number[]
  /** Simulated events, orders of the platform, and transactions that were signed. */
  events: number
  orders: number
  signed: number
  faults: ReadonlyMap<string, number>
  /** What happened, in order. */
  log: readonly string[]
}

/**
 * Simulates three nodes and an honest platform: two nodes are unmodified, and the third is hostile. The
 * clock is simulated, and the seed determines everything.
 */
export async function playByzantine(
  seed: number,
  draws: readonly number[] | null = null,
  options: Partial<Options> = {},
): Promise<ByzantineReport> {
  const run = new ByzantineRun(seed, new SeededRandom(seed, draws), {
    ...DEFAULTS,
    ...options,
    hasCancellations: options.hasCancellations ?? seed % 2 === 0,
  })
  const planned = await run.plan()
  const restore = run.clock.replaceGlobalTimers()
  try {
    return await run.play(planned)
  } finally {
    restore()
    run.close()
  }
}

class ByzantineRun {
  readonly clock = new VirtualClock(START_MS)
  readonly #random: SeededRandom
  readonly #options: Options
  readonly #attacks: readonly Attack[] | null
  readonly #isGoverned: boolean
  readonly #home = mkdtempSync(join(tmpdir(), 'byzantine-'))
  readonly #faults = new Map<string, number>()
  readonly #log: string[] = []
  readonly #keys: ClusterKeys
  readonly #wallets: Wallets
  readonly #network: Network
  readonly #signatures: Signatures
  readonly #nodes = new Map<number, SimulatedNode>()
  readonly #honest: HonestNode[] = []
  readonly #offered: OfferedPayment[] = []
  readonly #hostile: HostileNode | null
  readonly #chain: Chain
  readonly #platform: Platform
  readonly #oracle: Oracle
  readonly #apiKey: string
  readonly #around: Surroundings

  constructor(seed: number, random: SeededRandom, options: Options) {
    this.#random = random
    this.#options = options
    this.#attacks = this.#drawAttacks()
    const isDrawn = random.below(6) === 0
    this.#isGoverned = options.isGoverned ?? isDrawn
    this.#keys = new ClusterKeys(seed)
    this.#wallets = new Wallets(this.#keys)
    this.#network = new Network(this.clock, random, (fault) => this.#noted(fault))
    this.#signatures = new Signatures(this.#keys, () => this.clock.nowMs)
    this.#apiKey = createHash('sha256')
      .update(`byzantine ${seed}`)
      .digest('hex')
      .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5')
    this.#chain = new Chain(this.clock, random)
    this.#around = {
      clock: this.clock,
      network: this.#network,
      keys: this.#keys,
      signatures: this.#signatures,
      home: this.#home,
      nodes: this.#nodes,
      log: (line) => this.#note(line),
      failed: (text) => this.#oracle.find('error', text),
    }
    this.#hostile = this.#createNodes()
    this.#platform = this.#createPlatform()
    this.#oracle = new Oracle(
      {
        signatures: this.#signatures,
        chain: this.#chain,
        platform: this.#platform,
        honest: this.#honest,
        isPlatformHostile: this.#isPlatformHostile,
      },
      () => this.clock.events,
    )
    this.#signatures.onSigned = (known) => {
      this.#note(`signed: ${known.hash.slice(0, 6)} of ${known.step}`)
      this.#oracle.checkSafety()
    }
    this.#chain.onConfirmed = (known) => {
      this.#note(`confirmed: ${known.hash.slice(0, 6)} of ${known.step}`)
      this.#oracle.checkSafety()
    }
  }

  #drawAttacks(): readonly Attack[] | null {
    const { attacks, hasAllAttacks } = this.#options
    if (attacks === null || hasAllAttacks) return attacks
    return attacks.filter(() => this.#random.below(2) === 0)
  }

  #createNodes(): HostileNode | null {
    const number = this.#attacks === null ? null : this.#random.of(NODES)
    let hostile: HostileNode | null = null
    for (const node of NODES) {
      if (node === number) {
        hostile = new HostileNode(node, this.#around, {
          random: this.#random,
          attacks: this.#attacks!,
          chain: this.#chain,
          wallets: this.#wallets,
          offered: this.#offered,
        })
        this.#nodes.set(node, hostile)
      } else {
        const honest = new HonestNode(node, this.#around)
        this.#honest.push(honest)
        this.#nodes.set(node, honest)
      }
    }
    return hostile
  }

  #createPlatform(): Platform {
    const coins = Array.from({ length: COINS }, () => this.#wallets.coin())
    for (const { outpoint } of coins) this.#chain.addCoin(outpoint)
    for (const code of NETWORKS)
      if (this.#wallets.hasNonces(code))
        this.#chain.startAccount(code, this.#wallets.address(code), this.#wallets.firstNonce(code))
    return new Platform(this.#around, this.#chain, this.#wallets, coins)
  }

  #note(line: string): void {
    this.#log.push(`${((this.clock.nowMs - START_MS) / 1000).toFixed(3)} ${line}`)
  }

  get #isPlatformHostile(): boolean {
    return this.#attacks?.includes('platform') ?? false
  }

  #noted(fault: string): void {
    this.#faults.set(fault, (this.#faults.get(fault) ?? 0) + 1)
  }

  /** Draws the requests of callers, and signs them. */
  async plan(): Promise<Planned[]> {
    const random = this.#random
    const codes = NETWORKS.filter(() => random.below(2) === 0)
    const used = codes.length > 0 ? codes : [random.of(NETWORKS)]
    const count = 3 + random.below(4)
    const planned: Planned[] = []
    for (let at = 0; at < count; at++) {
      const code = random.of(used)
      const atMs = START_MS + SET_UP_MS + random.below(FAULTY_MS - SET_UP_MS)
      const amount = amountOf[code] * BigInt(at + 1)
      const nonce = `nonce-${at}`
      const request = await this.#request(code, { atMs, amount, nonce })
      const cancelMs = atMs + random.below(60_000)
      const isCancelled = this.#options.hasCancellations && random.below(3) === 0
      const id = transactionId(this.#apiKey, nonce)
      planned.push({
        atMs,
        code,
        amount,
        request,
        cancel: isCancelled
          ? { atMs: cancelMs, request: await this.#cancellation(id, cancelMs, `cancel-${at}`) }
          : null,
      })
    }
    if (this.#isPlatformHostile) for (const at of [1, 2]) await this.#offer(random.of(used), at)
    return planned
  }

  /** Lets a caller request a payment that only a hostile platform orders. */
  async #offer(code: Code, at: number): Promise<void> {
    const amount = amountOf[code] * BigInt(10 + at)
    const nonce = `offered-${at}`
    const request = await this.#request(code, { atMs: START_MS, amount, nonce })
    const purpose = { kind: 'pay', request }
    this.#offered.push({ code, amount, purpose, step: `offered payment ${at}` })
  }

  #sign(uri: string, body: object, atMs: number, nonce: string) {
    return signRequest({
      apiKey: this.#apiKey,
      privateKey: PRIVATE_KEY,
      method: 'POST',
      uri,
      body: JSON.stringify(body),
      now: Math.floor(atMs / 1000),
      nonce,
    })
  }

  #request(code: Code, { atMs, amount, nonce }: { atMs: number; amount: bigint; nonce: string }) {
    const decimals = { ETH: 18, BTC: 8, XLM: 7 }[code]
    const digits = amount.toString().padStart(decimals + 1, '0')
    const body = {
      asset: code,
      amount: `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`,
      destination_address: this.#wallets.sink(code),
      destination_type: 'EXTERNAL',
      source_type: 'INTERNAL',
    }
    return this.#sign('/dac/v1/transaction', body, atMs, nonce)
  }

  #cancellation(id: string, atMs: number, nonce: string) {
    return this.#sign(`/dac/v1/transaction/${id}/cancel`, {}, atMs, nonce)
  }

  async play(planned: readonly Planned[]): Promise<ByzantineReport> {
    for (const node of this.#honest) {
      node.start()
      node.store.append('enrol', {
        api_key: this.#apiKey,
        public_key_pem: PUBLIC_KEY,
        role: 'full',
        workspace: WORKSPACE,
        sub_account: SUB_ACCOUNT,
        sub_account_name: `sub-${SUB_ACCOUNT}`,
      })
    }
    if (this.#isGoverned) await this.#installPolicy()
    this.#hostile?.start()
    this.clock.as(new Process('chain'), () => void this.#chain.mine())
    for (const each of planned) this.#platform.accept(each)
    this.#orderSweep()
    this.#network.faults = {
      lost: this.#random.of([0, 10, 40]),
      slow: this.#random.of([0, 20, 100]),
      repeated: this.#random.of([0, 10]),
    }
    this.#scheduleCrashes()
    await this.#runUntil(START_MS + FAULTY_MS)
    if (this.#oracle.problems.length > 0) return this.#report()
    this.#note('the faults stop')
    this.#network.faults = NO_FAULTS
    for (const node of this.#honest) if (!node.process) node.start()
    await this.#runUntil(START_MS + FAULTY_MS + (this.#isGoverned ? GOVERNED_CALM_MS : CALM_MS))
    this.#oracle.checkSafety()
    if (this.#oracle.problems.length === 0 && !this.#isPlatformHostile) this.#oracle.checkLiveness()
    return this.#report()
  }

  async #installPolicy(): Promise<void> {
    const first = firstDocument(this.#keys, this.#apiKey)
    if (this.#hostile) this.#hostile.policyHash = first.hash
    for (const node of this.#honest)
      this.clock.as(node.process!, () => void node.enterPolicy(first))
    await this.clock.runUntil(START_MS)
    await this.clock.runUntil(START_MS + SET_UP_MS)
    if (!this.#honest.every((node) => node.isGoverned(WORKSPACE)))
      throw new Error('the first policy is not in force')
  }

  #orderSweep(): void {
    if (this.#random.below(2) === 0) return
    const fee = 42_000_000_000_000n
    this.#platform.sweep(1, START_MS + this.#random.below(FAULTY_MS + CALM_MS / 2), fee * 10n, fee)
  }

  /** Lets honest nodes end and start again at random times. */
  #scheduleCrashes(): void {
    const count = this.#random.of([0, 0, 1, 3])
    for (let at = 0; at < count; at++) {
      const node = this.#random.of(this.#honest)
      const downMs = this.#random.below(60_000)
      this.clock.later(this.#random.below(FAULTY_MS), () => {
        if (!node.process) return
        this.#noted('a node was killed')
        this.#note(`${node.name} is killed`)
        node.kill()
        this.clock.later(downMs, () => {
          if (!node.process) node.start()
        })
      })
    }
  }

  async #runUntil(untilMs: number): Promise<void> {
    for (;;) {
      const next = Math.min(untilMs, this.clock.nowMs + CHECK_MS)
      await this.clock.runUntil(next)
      if (!this.#isPlatformHostile) this.#oracle.checkGrowth((this.clock.nowMs - START_MS) / 60_000)
      if (next === untilMs || this.#oracle.problems.length > 0) return
    }
  }

  #report(): ByzantineReport {
    const { problems } = this.#oracle
    for (const [what, times] of this.#hostile?.counts ?? []) {
      const kind = what.replace(/ (of|at|[0-9a-f]{6} again).*/, '')
      this.#faults.set(
        `hostile node: ${kind}`,
        (this.#faults.get(`hostile node: ${kind}`) ?? 0) + times,
      )
    }
    return {
      failure:
        problems.length === 0
          ? null
          : problems
              .map(({ guarantee, text, events }) => `${guarantee}, event ${events}: ${text}`)
              .join('\n'),
      problems,
      draws: this.#random.draws,
      events: this.clock.events,
      orders: this.#platform.orders,
      signed: this.#signatures.signed.length,
      faults: this.#faults,
      log: this.#log,
    }
  }

  close(): void {
    for (const node of this.#honest) node.close()
    rmSync(this.#home, { recursive: true, force: true })
  }
}
