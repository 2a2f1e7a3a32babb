import { createHash } from 'node:crypto'
import { traitsOf, type Asset, type UnsignedTransaction } from '@custody/chains'
import { registry } from '../../../../../signer/testing/signer-cluster.ts'
import type { SeededRandom } from '../../seeded-random.ts'
import type { CallerRequest, Callers } from './requests.ts'
import { CHANGE_INDEX, GAS, THIEF, TOKEN_GAS, type Transfer, type Wallets } from './wallets.ts'

/** An order of the hostile platform. */
export interface GeneratedOrder {
  purpose: Record<string, unknown>
  unsigned: UnsignedTransaction
  policy?: Record<string, unknown>
  /** What it takes of the wallet, and the request or rule that it is for. */
  placed: { id: string } & Pick<Transfer, 'nonce' | 'coins'>
}

/** A signed transaction, as an order names it. */
interface Signature {
  unsigned: UnsignedTransaction
  signed: string
}

/** Share of fields that are replaced by something else, per thousand. */
const FORGED = 70

/** Purposes and how often each is drawn. */
const PURPOSES = [
  ...Array<'pay'>(5).fill('pay'),
  ...Array<'cancel'>(6).fill('cancel'),
  ...Array<'forward'>(2).fill('forward'),
  ...Array<'fuel'>(4).fill('fuel'),
  ...Array<'sweep'>(1).fill('sweep'),
  'other',
] as const

/**
 * Draws orders of every purpose. Most fields fit together; any of them may be left out, repeated, or
 * belong to another step, rule or sub-account. Identifiers may be invented, and fees are as high as
 * the network's cap.
 */
export class OrderGenerator {
  readonly #random: SeededRandom
  readonly #wallets: Wallets
  readonly #callers: Callers
  /** IDs of forwards for which a payment or anything else was ordered. */
  readonly #forwards: string[] = []
  /** Path and nonce with which a request was last signed, by its ID. */
  readonly #placed = new Map<string, GeneratedOrder['placed']>()
  readonly #signed: (Signature & { id: string })[] = []
  #last!: GeneratedOrder['placed']
  #count = 0

  readonly #isFuelled: boolean

  /** @param isFuelled whether gas funding is drawn, which moves coins to own addresses */
  constructor(random: SeededRandom, wallets: Wallets, callers: Callers, isFuelled: boolean) {
    this.#isFuelled = isFuelled
    this.#random = random
    this.#wallets = wallets
    this.#callers = callers
  }

  get #asset(): Asset {
    return registry.asset(this.#wallets.network.native_asset) as Asset
  }
  get #cap(): bigint {
    return BigInt(this.#wallets.network.fee_cap)
  }
  /** Base amount of payments of the native coin, and of the token. */
  get #unit(): bigint {
    // An output of Cardano contains at least about one coin.
    return this.#wallets.network.family === 'cardano' ? this.#cap : this.#cap / 10n
  }
  #unitOf({ type, decimals }: Asset): bigint {
    return type === 'token' ? 10n ** BigInt(decimals) : this.#unit
  }
  /** Draws the native coin, or the token of the run. */
  #drawAsset(): Asset {
    const { token } = this.#wallets
    return token !== null && this.#random.below(2) === 0
      ? (registry.asset(token) as Asset)
      : this.#asset
  }

  /** Returns an amount in coins. */
  textOf(units: bigint): string {
    const scale = 10n ** BigInt(this.#asset.decimals)
    return `${units / scale}.${String(units % scale).padStart(this.#asset.decimals, '0')}`
  }

  #forge<T>(fitting: T, other: () => T): T {
    return this.#random.rarely(FORGED) ? other() : fitting
  }

  /** Lets a caller sign another request. */
  async request(): Promise<void> {
    const random = this.#random
    const sub = random.below(5) === 0 ? 2 : 1
    const pays = this.#callers.of('pay')
    const rules = this.#callers.of('rule')
    const draw = random.below(10)
    if (draw < 5 || pays.length === 0) return void (await this.#callers.pay(sub, this.#payee(sub)))
    if (draw < 6 || rules.length === 0) {
      const payee = this.#payee(sub)
      const units = this.#unitOf(registry.asset(payee.asset) as Asset) * 2n
      return void (await this.#callers.rule(sub, { ...payee, units }))
    }
    if (draw < 7) return void (await this.#callers.end(random.of(rules)))
    await this.#callers.amend(draw < 9 ? 'cancel' : 'speed-up', random.of(pays))
  }

  #payee(sub: number) {
    const random = this.#random
    const drawn = this.#drawAsset()
    const { asset_name: asset, decimals } = drawn
    const unit = this.#unitOf(drawn)
    const other = sub === 1 ? 2 : 1
    const to =
      random.below(4) === 0
        ? this.#wallets.address(this.#wallets.pathOf(other, 0))
        : this.#wallets.sink(1 + random.below(3))
    const isTagged = drawn.takes_tag && random.below(2) === 0
    const { token } = this.#wallets
    // As many units of the native coin as a wallet has of the token, so that it can pay the other one.
    const alike =
      token !== null && random.below(3) === 0 ? this.#unitOf(registry.asset(token)!) : unit
    const units = random.below(3) === 0 ? unit / 100n : alike * random.of([1n, 2n, 5n])
    return { asset, decimals, to, units, tag: isTagged ? '7' : null }
  }

  /** Draws orders that one session is to sign; their nonces follow each other. */
  draw(): GeneratedOrder[] {
    const before = new Map(this.#wallets.nonces)
    const orders: GeneratedOrder[] = []
    const count = this.#random.below(6) === 0 ? 2 + this.#random.below(3) : 1
    for (let at = 0; at < count; at++) {
      const order = this.#draw()
      if (order === null) continue
      this.#pass(order)
      orders.push(order)
    }
    this.#wallets.nonces.clear()
    for (const [path, nonce] of before) this.#wallets.nonces.set(path, nonce)
    return orders
  }

  #draw(): GeneratedOrder | null {
    const random = this.#random
    switch (random.of(PURPOSES)) {
      case 'pay':
        return this.#pay(random.of(this.#callers.of('pay')))
      case 'cancel':
        return this.#cancel()
      case 'forward':
        return this.#forward()
      case 'fuel':
        return this.#fuel()
      case 'sweep':
        return this.#sweep()
      default:
        return this.#other()
    }
  }

  #payPurpose(of: CallerRequest): Record<string, unknown> {
    const faster = this.#callers.of('speed-up').filter(({ about }) => about === of.id)
    const pick = this.#forge(faster, () => this.#callers.of('speed-up'))
    return {
      kind: 'pay',
      request: this.#forge(of, () => this.#random.of(this.#callers.signed)).request,
      ...(pick.length > 0 && this.#random.below(2) === 0
        ? { speed_up: { request: this.#random.of(pick).request } }
        : {}),
    }
  }

  #forwardPurpose(rule: CallerRequest): Record<string, unknown> {
    return { kind: 'forward', id: this.#forwardId(), rule: rule.request }
  }

  /** Returns an invented ID, or one that was used before. */
  #forwardId(): string {
    if (this.#forwards.length > 0 && this.#random.below(3) === 0)
      return this.#random.of(this.#forwards)
    const id = createHash('sha256')
      .update(`forward ${++this.#count}`)
      .digest('hex')
      .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-4$3-8$4-$5')
      .replace(/-(4.{3}).-/, '-$1-')
      .replace(/-(8.{3}).-/, '-$1-')
    this.#forwards.push(id)
    return id
  }

  /** The platform's part of an order for a policy; most of it is left out. */
  #policy(to: string | null): Record<string, unknown> | undefined {
    const random = this.#random
    const via = random.below(2) === 0 ? { via: this.#forge('all', () => 'other') } : {}
    const other = this.#wallets.pathOf(2, 0)
    const own = [1, 2].map((sub) => this.#wallets.pathOf(sub, 0))
    const path = own.find((each) => this.#wallets.address(each) === to)
    const named =
      random.below(3) === 0 && (path || random.rarely(FORGED)) ? { to_path: path ?? other } : {}
    const policy = { ...via, ...named }
    return Object.keys(policy).length > 0 ? policy : undefined
  }

  #fee(): bigint {
    const { family } = this.#wallets.network
    const fee = this.#random.of([
      this.#cap / 100n,
      this.#cap / 2n,
      this.#cap,
      this.#cap,
      this.#cap + 1n,
    ])
    // A multiple of the gas of each kind of transfer, so that it is reached exactly.
    const gas = this.#wallets.token === null ? GAS : GAS * TOKEN_GAS
    return family === 'evm' ? (fee / gas) * gas : fee
  }

  #coins(sub: number, count: number): Transfer['coins'] {
    const mine = this.#wallets.coins.filter(({ path }) => path[0] === sub)
    const drawn = Array.from({ length: mine.length > 0 ? count : 0 }, () => this.#random.of(mine))
    return [...new Set(drawn)]
  }

  /** Draws a place for change that is not the one of the sub-account that pays. */
  #change(): Transfer['change'] {
    const path = this.#wallets.pathOf(
      this.#random.of([0, 1, 2]),
      this.#random.of([0, 1, CHANGE_INDEX]),
    )
    const address =
      this.#random.below(2) === 0 ? this.#wallets.sink(THIEF) : this.#wallets.address(path)
    return { path, address }
  }

  /** Builds the transaction that is ordered. @param id of the request that it is for */
  #transaction(
    id: string,
    sub: number,
    fields: Partial<Transfer> & Pick<Transfer, 'to' | 'amount'>,
  ): UnsignedTransaction | null {
    const random = this.#random
    const from = this.#forge(sub, () => random.of([0, 1, 2]))
    const path =
      fields.path ??
      this.#wallets.pathOf(
        from,
        this.#forge(0, () => random.of([1, 2])),
      )
    const placed = this.#placed.get(id)
    const nonce =
      placed && random.below(2) === 0 ? placed.nonce : this.#wallets.drawNonce(random, path)
    const coins =
      placed && placed.coins.length > 0 && random.below(3) === 0
        ? placed.coins
        : this.#coins(from, 1 + random.below(2))
    this.#last = { id, nonce, coins }
    return this.#wallets.build({
      tag: null,
      fee: this.#fee(),
      isWhole: false,
      change: this.#forge(null, () => this.#change()),
      ...fields,
      to: this.#forge(fields.to, () => random.of([this.#wallets.sink(THIEF), fields.to])),
      path,
      nonce,
      coins,
    })
  }

  #order(
    purpose: Record<string, unknown>,
    unsigned: UnsignedTransaction | null,
    to: string | null,
  ): GeneratedOrder | null {
    if (unsigned === null) return null
    const policy = this.#policy(to)
    return { purpose, unsigned, ...(policy ? { policy } : {}), placed: this.#last }
  }

  /** Remembers where a request was signed, so that later orders can replace it. */
  noteSigned({ purpose, unsigned, placed }: GeneratedOrder, signed: string): void {
    this.#placed.set(placed.id, placed)
    if (purpose['kind'] === 'pay' || purpose['kind'] === 'forward')
      this.#signed.push({ id: placed.id, unsigned, signed })
    this.#pass({ unsigned, placed })
    this.#wallets.used.add(unsigned.inputs[0]!.path.join('/'))
  }

  /** Lets later transactions of an account follow one. */
  #pass({ unsigned, placed: { nonce } }: Pick<GeneratedOrder, 'unsigned' | 'placed'>): void {
    const path = unsigned.inputs[0]!.path.join('/')
    if (nonce >= (this.#wallets.nonces.get(path) ?? 0n)) this.#wallets.nonces.set(path, nonce + 1n)
  }

  #pay(of: CallerRequest): GeneratedOrder | null {
    const tag = (JSON.parse(of.request.body) as { address_tag?: string }).address_tag ?? null
    const unsigned = this.#transaction(of.id, of.subAccount, {
      asset: this.#forge(of.asset, () => this.#drawAsset().asset_name),
      to: of.to,
      tag: this.#forge(tag, () => '8'),
      amount: this.#forge(of.units, () => of.units * this.#random.of([2n, 10n]) + 1n),
    })
    return this.#order(this.#payPurpose(of), unsigned, of.to)
  }

  /** Signed transactions that a cancellation names: of the request, of another one, or none. */
  #replaces({ id }: CallerRequest): { replaces?: Signature[] } {
    const random = this.#random
    const own = this.#signed.filter((each) => each.id === id)
    const named = this.#forge(own, () => this.#signed)
    if (named.length === 0 || random.below(3) === 0) return {}
    return { replaces: [random.of(named)].map(({ unsigned, signed }) => ({ unsigned, signed })) }
  }

  /** A cancellation of a payment or a forward, whether or not anything of it was signed. */
  #cancel(): GeneratedOrder | null {
    const random = this.#random
    const by = [...this.#callers.of('cancel'), ...this.#callers.of('end')]
    if (by.length === 0) return null
    const request = random.of(by)
    const all = [...this.#callers.of('pay'), ...this.#callers.of('rule')]
    const about = this.#forge(
      all.find(({ id }) => id === request.about)!,
      () => random.of(all),
    )
    const { cancellation } = traitsOf(this.#wallets.network)
    const index = this.#forge(cancellation?.index ?? 0, () => random.of([0, 1, CHANGE_INDEX]))
    const purpose = {
      kind: 'cancel',
      of: about.kind === 'pay' ? this.#payPurpose(about) : this.#forwardPurpose(about),
      request: request.request,
      ...this.#replaces(about),
    }
    const unsigned = this.#transaction(about.id, about.subAccount, {
      to: this.#wallets.address(this.#wallets.pathOf(about.subAccount, index)),
      // A payment of nothing exists only where payments are cancelled by one.
      amount: this.#forge(cancellation ? 0n : 1n, () => this.#unit),
      isWhole: true,
    })
    return this.#order(purpose, unsigned, null)
  }

  #forward(): GeneratedOrder | null {
    const rules = this.#callers.of('rule')
    if (rules.length === 0) return null
    const rule = this.#random.of(rules)
    const unsigned = this.#transaction(rule.id, rule.subAccount, {
      asset: this.#forge(rule.asset, () => this.#drawAsset().asset_name),
      to: rule.to,
      amount: this.#random.of([rule.units / 10n, rule.units / 2n, rule.units]),
    })
    return this.#order(this.#forwardPurpose(rule), unsigned, rule.to)
  }

  /** Gas funding of any transaction, also of one that no node has signed. */
  #fuel(): GeneratedOrder | null {
    const random = this.#random
    if (!this.#isFuelled || traitsOf(this.#wallets.network).feesFrom !== 'tank') return null
    const pays = this.#callers.of('pay')
    const rules = this.#callers.of('rule')
    const draw = random.below(4)
    const of = draw < 2 || rules.length === 0 ? random.of(pays) : random.of(rules)
    const by = [...this.#callers.of('cancel'), ...this.#callers.of('end')].filter(
      ({ about }) => about === of.id,
    )
    const purpose = of.kind === 'pay' ? this.#payPurpose(of) : this.#forwardPurpose(of)
    const cancelled =
      by.length > 0 && random.below(2) === 0
        ? { kind: 'cancel', of: purpose, request: random.of(by).request, ...this.#replaces(of) }
        : purpose
    const index = 1 + random.below(2)
    const swept = {
      kind: 'sweep',
      sub_account: of.subAccount,
      asset: this.#forge(
        this.#wallets.token ?? `USDT_${this.#wallets.network.code}`,
        () => this.#asset.asset_name,
      ),
      address_index: index,
    }
    const isSweep = draw === 3
    const price = this.#cap / GAS
    const to = this.#wallets.address(this.#wallets.pathOf(of.subAccount, isSweep ? index : 0))
    const most = (GAS * price * 12n) / 10n
    const unsigned = this.#transaction(`fuel ${of.id}`, 0, {
      path: this.#wallets.pathOf(0, 0),
      to,
      amount: this.#forge(most, () => random.of([most + 1n, most / 2n])),
    })
    return this.#order(
      {
        kind: 'fuel',
        for: isSweep ? swept : cancelled,
        gas: GAS.toString(),
        max_fee_per_gas: price.toString(),
      },
      unsigned,
      null,
    )
  }

  #sweep(): GeneratedOrder | null {
    const random = this.#random
    const sub = 1 + random.below(2)
    const index = 1 + random.below(2)
    const { asset_name: asset, type } = this.#drawAsset()
    const purpose = {
      kind: 'sweep',
      sub_account: this.#forge(sub, () => 0),
      asset,
      address_index: this.#forge(index, () => 0),
    }
    const unsigned = this.#transaction(`sweep ${sub} ${index}`, sub, {
      path: this.#wallets.pathOf(sub, index),
      asset,
      to: this.#wallets.address(this.#wallets.pathOf(sub, 0)),
      amount: type === 'token' ? this.#unitOf(registry.asset(asset) as Asset) * 1000n : this.#cap,
    })
    return this.#order(purpose, unsigned, null)
  }

  /** Purposes that need an operator's order, which is not on record here, and loans of energy. */
  #other(): GeneratedOrder | null {
    const random = this.#random
    const of = random.of(this.#callers.of('pay'))
    const purpose = random.of<Record<string, unknown>>([
      { kind: 'drain', order: 'invented' },
      { kind: 'recover', order: 'invented' },
      { kind: 'tank-stake', order: 'invented' },
      { kind: 'lend', step: 'delegate', for: this.#payPurpose(of) },
      { kind: 'stake', step: 'freeze', request: of.request },
      { kind: 'consolidate', request: of.request },
    ])
    const unsigned = this.#transaction(of.id, random.of([0, of.subAccount]), {
      to: random.of([of.to, this.#wallets.sink(THIEF)]),
      amount: of.units,
    })
    return this.#order(purpose, unsigned, of.to)
  }
}
