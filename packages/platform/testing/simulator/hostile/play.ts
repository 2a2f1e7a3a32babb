import { ETH, callerPem, registry } from '../../../../signer/testing/signer-cluster.ts'
import { NodeRefused, NodeUnavailable } from '../../../src/core/signing/nodes.ts'
import { InProcessNodes } from '../../in-process-nodes.ts'
import { GovernedNodes } from '../policy/governed-nodes.ts'
import { isGovernedSeed, isRestoringSeed } from '../policy/simulated-policy.ts'
import { WholeKeys } from '../../../../signer/testing/whole-keys.ts'
import { SeededRandom } from '../seeded-random.ts'
import { HostilePolicy, UNIT } from './governed.ts'
import { Forger, type Item } from './forger.ts'
import { read, Signatures } from './oracle.ts'
import { playOrders } from './orders/play.ts'
import type { Hostile } from './report.ts'
import { People, type PlannedRequest } from './requests.ts'

const ACTS = 90
/** Share of forged fields if people forge approvals and policies too, per thousand. */
const FORGED_GOVERNED = 25
/** Share of signatures during which the platform requests another one, per thousand. */
const PARALLEL = 400
const WORKSPACE = 'acme'
const TOKEN = registry.asset('USDT_ETH')?.contract_address as string

/**
 * Simulates a platform that sends randomly generated requests to any two of three nodes. The oracle
 * checks the transactions that the nodes sign.
 */
export async function playHostile(
  seed: number,
  draws: readonly number[] | null = null,
): Promise<Hostile> {
  // Half of the seeds draw orders of every purpose, and execute what was signed on a local chain.
  if (seed % 2 === 0) return playOrders(seed, draws)
  const fixture = new HostileFixture(seed, draws)
  try {
    return await fixture.play()
  } finally {
    fixture.nodes.close()
  }
}

class HostileFixture {
  readonly random: SeededRandom
  readonly nodes: InProcessNodes
  readonly #people: People
  readonly #forger: Forger
  readonly #signatures = new Signatures()
  readonly #refusals = new Map<string, number>()
  readonly #faults = new Map<string, number>()
  readonly #voids = new Map<string, Set<number>>()
  /** Null: the workspace has no policy. */
  readonly #policy: HostilePolicy | null
  #isParallel = false
  #nowMs = Date.UTC(2030, 0, 1)
  #requestCount = 0
  /** Requests and their results. */
  readonly #asks: string[] = []

  constructor(seed: number, draws: readonly number[] | null) {
    this.random = new SeededRandom(seed, draws)
    const keys = new WholeKeys(seed)
    const governed = isGovernedSeed(seed) ? new GovernedNodes(() => this.#nowMs) : null
    this.nodes = new InProcessNodes(3, () => this.#nowMs, keys, governed)
    this.nodes.fault = () => {
      if (!this.random.rarely(60)) return undefined
      const fault = this.random.of(['torn', 'lost'] as const)
      this.#noted(fault === 'torn' ? 'a node ended in mid-round' : 'an answer of a node was lost')
      return fault
    }
    const drawUnits = () => UNIT * this.random.of([1n, 1n, 1n, 2n, 3n, 5n])
    this.#people = new People(
      seed,
      this.random,
      () => this.#nowMs,
      governed ? drawUnits : undefined,
    )
    this.#forger = new Forger(
      this.random,
      keys,
      this.#people,
      governed ? FORGED_GOVERNED : undefined,
    )
    for (const { apiKey, subAccount } of this.#people.list) {
      this.nodes.enrol({
        api_key: apiKey,
        public_key_pem: callerPem,
        role: 'full',
        workspace: WORKSPACE,
        sub_account: subAccount,
      })
    }
    this.#policy = governed && this.#governed(governed, isRestoringSeed(seed))
  }

  #governed(governed: GovernedNodes, hasLosses: boolean): HostilePolicy {
    const now = () => this.#nowMs
    const policy = new HostilePolicy(governed, {
      random: this.random,
      people: this.#people,
      nodes: this.nodes,
      schedule: {
        get nowMs() {
          return now()
        },
      },
      nodeFaults: { isDown: (node) => governed.isLost(node) },
      hasLosses,
      onLost: (node) => this.#forgetVoids(node),
      problems: this.#signatures.problems,
      lines: [],
      database: null,
      noted: (kind) => this.#noted(kind),
      judge: ({ request }) => this.#ask(1 + this.random.below(3), '/policy/judge', { request }),
    })
    governed.at = () => this.#parallel()
    return policy
  }

  /** Drops the voids that only a node had which has lost its record. */
  #forgetVoids(node: number): void {
    for (const [name, holders] of this.#voids)
      if (holders.size === 1 && holders.has(node)) this.#voids.delete(name)
  }

  /** Requests another payment at a moment of a signature, as concurrent orders do. */
  async #parallel(): Promise<void> {
    if (this.#isParallel || !this.random.rarely(PARALLEL)) return
    this.#isParallel = true
    try {
      await this.#sign([this.#payment(this.random.of(this.#people.wishes))])
    } finally {
      this.#isParallel = false
    }
  }

  #payment(planned: PlannedRequest, at = 0): Item {
    return {
      purpose: this.#forger.pay(planned),
      unsigned: this.#forger.unsigned(planned, false, at),
      policy: this.#policy?.orderPolicy([planned]),
    }
  }

  #noted(kind: string): void {
    this.#faults.set(kind, (this.#faults.get(kind) ?? 0) + 1)
  }

  async play(): Promise<Hostile> {
    await this.#policy?.install()
    for (let count = 0; count < 4; count++) await this.#people.plan()
    const { problems } = this.#signatures
    for (let act = 0; act < ACTS && problems.length === 0; act++) {
      if (this.#policy) await this.#governedAct(this.#policy)
      else await this.#act()
      problems.push(...(this.#policy?.problems() ?? []))
    }
    const { count } = this.#signatures
    return {
      failure: problems.length > 0 ? problems.join('\n') : null,
      draws: this.random.draws,
      count: this.#requestCount,
      signed: count,
      refusals: this.#refusals,
      faults: this.#faults,
      asks: this.#asks,
    }
  }

  /** An act of the people, a new payment that the platform requests, or any other act. */
  async #governedAct(policy: HostilePolicy): Promise<void> {
    switch (this.random.below(4)) {
      case 0:
        this.#nowMs += await policy.act()
        return
      case 1:
        await this.#people.plan()
        return this.#sign([this.#payment(this.#people.wishes.at(-1)!)])
      default:
        return this.#act()
    }
  }

  async #act(): Promise<void> {
    const { random } = this
    const planned = random.of(this.#people.wishes)
    switch (random.below(18)) {
      case 0:
        return this.#people.plan()
      case 1:
        return this.#show(planned)
      case 2:
        return this.#people.cancel(planned)
      case 3:
        return random.below(4) === 0 ? this.#void(planned) : this.#people.plan()
      case 4:
        this.#noted('time passed')
        this.#nowMs += random.of([
          5000,
          20_000,
          20_000,
          60_000,
          200_000,
          700_000,
          random.rarely(100) ? 90_000_000 : 1000,
        ])
        return
      case 5:
        this.#noted('a node was restarted')
        return this.nodes.restart(1 + random.below(3))
      case 6:
        this.#noted('the clock of a node was off')
        this.nodes.offMs.set(
          1 + random.below(3),
          1000 * (random.rarely(200) ? random.below(1200) - 600 : random.below(40) - 20),
        )
        return
      case 7:
      case 8:
        return this.#cancel(planned)
      case 9:
      case 10:
        return this.#fuel()
      case 11:
      case 12:
        return this.#run()
      case 13:
        return this.#sign([this.#forger.sweep(random.of(this.#people.list).subAccount)])
      case 14:
        return this.#people.speedUp(planned)
      default:
        return this.#sign([this.#payment(planned)])
    }
  }

  /**
   * Sends a request to a node.
   * @returns the response, or null if the node refused or did not respond
   */
  async #ask(node: number, path: string, body: unknown): Promise<unknown> {
    this.#requestCount++
    const at = this.#asks.push(`${this.#nowMs} node ${node} ${path} ${JSON.stringify(body)}`) - 1
    const note = (what: string) => {
      this.#asks[at] = `${this.#asks[at]} -> ${what}`
    }
    if (this.#policy?.nodes.isLost(node)) {
      note('lost')
      return null
    }
    try {
      const answer = await this.nodes.call(node, 'POST', path, body)
      note('done')
      return answer
    } catch (error) {
      note(error instanceof NodeRefused ? JSON.stringify(error.body) : String(error))
      if (error instanceof NodeRefused) {
        const code = String((error.body as { error?: unknown }).error)
        this.#refusals.set(code, (this.#refusals.get(code) ?? 0) + 1)
        return null
      }
      if (error instanceof NodeUnavailable && error.code !== null) {
        this.#refusals.set(error.code, (this.#refusals.get(error.code) ?? 0) + 1)
        return null
      }
      if (error instanceof NodeUnavailable)
        return error.message.includes('mid-round') ? null : 'unheard'
      throw error
    }
  }

  async #show(planned: PlannedRequest): Promise<void> {
    const receipt = await this.#ask(1 + this.random.below(3), '/receipt', {
      request: planned.request,
    })
    if (receipt !== null) planned.receipts.push(receipt)
  }

  /** Orders some of the nodes to never sign for a request again. */
  async #void(planned: PlannedRequest): Promise<void> {
    for (const node of [1, 2, 3]) {
      if (
        this.random.below(3) === 0 ||
        (await this.#ask(node, '/void', { request: planned.request })) === null
      )
        continue
      const held = this.#voids.get(planned.name) ?? new Set()
      this.#voids.set(planned.name, held.add(node))
      if (held.size >= 2) this.#signatures.voided(planned.name)
    }
  }

  async #cancel(planned: PlannedRequest): Promise<void> {
    if (planned.cancels.length === 0) await this.#people.cancel(planned)
    await this.#sign([
      { purpose: this.#forger.cancel(planned), unsigned: this.#forger.unsigned(planned, true) },
    ])
  }

  async #fuel(): Promise<void> {
    const wishes = Array.from({ length: 1 + this.random.below(3) }, () =>
      this.random.of(this.#people.wishes),
    )
    const mine =
      this.random.below(4) === 0
        ? wishes
        : wishes.filter(({ person }) => person.subAccount === wishes[0]?.person.subAccount)
    await this.#sign([{ ...this.#forger.fuel(mine), policy: this.#policy?.orderPolicy(mine) }])
  }

  /** Requests that one session signs several payments, of one account or of several. */
  async #run(): Promise<void> {
    const first = this.random.of(this.#people.wishes)
    const alike = this.#people.wishes.filter(
      ({ asset, person }) => asset !== 'BTC' && person.subAccount === first.person.subAccount,
    )
    const from = this.random.below(5) === 0 || alike.length === 0 ? this.#people.wishes : alike
    const items = Array.from({ length: 2 + this.random.below(4) }, (_, at) =>
      this.#payment(this.random.of(from), at),
    )
    await this.#sign(items)
  }

  async #sign(items: readonly Item[]): Promise<void> {
    const node = 1 + this.random.below(3)
    const partner = 1 + ((node + this.random.below(2)) % 3)
    const times = this.random.rarely(100) ? 2 : 1
    for (let time = 0; time < times; time++) {
      const answer =
        items.length === 1 && this.random.below(8) > 0
          ? await this.#ask(node, '/sign', {
              workspace: WORKSPACE,
              partner,
              purpose: items[0]?.purpose,
              unsigned: items[0]?.unsigned,
              policy: items[0]?.policy,
            })
          : await this.#ask(node, '/sign-run', {
              workspace: WORKSPACE,
              partner,
              run: items.map(({ purpose, unsigned, policy }) => ({ purpose, unsigned, policy })),
            })
      // Checks the signed transactions even if the platform lost the response, because they may be
      // public.
      if (answer !== null) for (const item of items) this.#judge(item)
    }
  }

  #wishOf(pay: unknown): PlannedRequest | undefined {
    const { request } = pay as { request: { token: string; body: string; uri: string } }
    return this.#people.wishes.find(
      ({ request: { token, body, uri } }) =>
        token === request.token && body === request.body && uri === request.uri,
    )
  }

  #judge({ purpose, unsigned }: Item): void {
    const transaction = read(unsigned, TOKEN, this.#forger.coins)
    const bytes = `${unsigned.network} ${unsigned.bytes}`
    if (unsigned.network === 'ETH') {
      const [{ path }] = unsigned.inputs as [{ path: number[] }]
      const nonce = Number(transaction.places[0]?.split(' ')[1])
      this.#forger.nonces.set(
        path.join('/'),
        Math.max(this.#forger.nonces.get(path.join('/')) ?? 0, nonce + 1),
      )
    }
    if (purpose['kind'] === 'fuel') {
      const parts = [
        purpose,
        ...((purpose['beside'] as Record<string, unknown>[] | undefined) ?? []),
      ]
      const most = parts.reduce(
        (sum, part) =>
          sum +
          (BigInt(part['gas'] as string) * BigInt(part['max_fee_per_gas'] as string) * 12n) / 10n,
        0n,
      )
      const wishes = parts.map((part) => this.#wishOf(part['for']))
      const subs = new Set(wishes.map((planned) => planned?.person.subAccount))
      const [sub] = subs
      const to =
        subs.size === 1 && sub !== undefined
          ? this.#forger.address(ETH, [sub, ETH.chain_index, 0])
          : null
      const faster =
        /"speed_up":{"request":{"token":"([^"]+)"/.exec(JSON.stringify(purpose['for']))?.[1] ?? ''
      return this.#signatures.fuel(wishes, faster, most, to, transaction, bytes)
    }
    if (purpose['kind'] === 'sweep') {
      return this.#signatures.sweep(
        this.#forger.address(ETH, [transaction.sub, ETH.chain_index, 0]),
        transaction,
      )
    }
    const isCancel = purpose['kind'] === 'cancel'
    const request = this.#wishOf(isCancel ? purpose['of'] : purpose)
    if (isCancel && request && !request.cancels.includes(purpose['request'] as never)) {
      this.#signatures.problems.push(
        `a cancellation of ${request.name} that its caller has not signed`,
      )
    }
    if (request && unsigned.network === 'ETH')
      this.#forger.placed.set(request.name, Number(transaction.places[0]?.split(' ')[1]))
    const ownIndex = unsigned.network === 'BTC' ? 0x7fffffff : 0
    const own =
      isCancel && request
        ? this.#forger.address(registry.network(unsigned.network) as typeof ETH, [
            request.person.subAccount,
            registry.network(unsigned.network)?.chain_index as number,
            ownIndex,
          ])
        : null
    this.#signatures.payment(request, transaction, bytes, own)
  }
}
