import { formatAmount, parseAmount, type Asset } from '@custody/chains'
import type { Caller } from '../../src/core/http/endpoint.ts'
import { Refused, type Callers } from './callers.ts'
import type { SimulatedEnvironment } from './environment.ts'

/** Activities besides transfers; each simulation draws a subset. */
const PRODUCTS = ['deposits', 'rules', 'screening', 'staking', 'invoices', 'webhooks'] as const
type Product = (typeof PRODUCTS)[number]

/**
 * Coins that an external party sent to one of the platform's addresses; every amount is different.
 */
export interface SentDeposit {
  asset: string
  address: string
  units: bigint
}

/** One in this many deposits that a contract could pay is paid by one. */
const BY_CONTRACT_ONE_IN = 2

interface Freeze {
  sub_account_id: string
  asset: string
  address: string
  address_tag: string | null
}

/** Activities of callers besides transfers. */
export class TransferLog {
  readonly #environment: SimulatedEnvironment
  readonly #callers: Callers
  readonly products: ReadonlySet<Product>
  readonly sent: SentDeposit[] = []
  #count = 0
  readonly #ruled = new Set<string>()

  constructor(environment: SimulatedEnvironment, callers: Callers) {
    this.#environment = environment
    this.#callers = callers
    this.products = new Set(PRODUCTS.filter(() => environment.random.below(3) === 0))
  }

  /** Creates the webhooks and screening settings, before any other request. */
  async begin(): Promise<void> {
    for (const caller of this.#environment.callers) {
      if (this.products.has('webhooks')) {
        await this.#callers.until(caller, '/dac/v1/webhooks', {
          url: `http://127.0.0.1:9/${caller.subAccountIndex}`,
          events: ['*'],
        })
      }
      if (this.products.has('screening')) {
        await this.#callers.until(caller, '/dac/v1/aml', {
          provider: 'CHAINALYSIS',
          aml_token: 'token',
          aml_risk_levels: 'SEVERE, HIGH',
          aml_deposit: true,
          aml_withdrawal: true,
        })
      }
    }
  }

  /** Starts one randomly selected activity. */
  act(): void {
    const { random } = this.#environment
    const [product, caller, asset] = [
      random.of([...this.products]),
      random.of(this.#environment.callers),
      random.of(this.#environment.assets),
    ]
    const done = {
      deposits: () => this.#deposit(caller, asset),
      rules: () => this.#rule(caller, asset),
      screening: () => this.#screen(asset),
      staking: () => this.#stake(caller),
      invoices: () => this.#invoice(caller, asset),
      webhooks: () => this.#deposit(caller, asset),
    }[product]()
    done.catch((error: unknown) => {
      if (!(error instanceof Refused) || error.status === 500)
        this.#environment.problems.push(`${product}: ${String((error as Error).stack)}`)
      else this.#environment.lines.push(`${product}: ${error.message}`)
    })
  }

  #place(asset: string) {
    const network = this.#environment.networks.find(({ place: { assets } }) =>
      assets.includes(asset),
    )
    return (network as SimulatedEnvironment['networks'][number]).place
  }

  #amount(asset: string, least: string): { text: string; units: bigint } {
    const { decimals } = this.#environment.registryAsset(asset) as Asset
    // Counts in steps of ten smallest units, so that no amount equals a payment of a caller.
    const units = parseAmount(least, decimals) + BigInt(++this.#count) * 10n
    return { text: formatAmount(units, decimals), units }
  }

  async #send(
    asset: string,
    address: string,
    tag: string | undefined,
    amount: { text: string; units: bigint },
  ): Promise<void> {
    await this.#callers.outside(`fund ${asset} ${amount.text}`, () =>
      this.#environment.control({
        command: 'fund',
        asset,
        address,
        amount: amount.text,
        ...(tag ? { tag } : {}),
      }),
    )
    this.sent.push({ asset, address, units: amount.units })
  }

  async #deposit(caller: Caller, asset: string): Promise<void> {
    this.#environment.noted('a deposit came in')
    const { address, tag } = JSON.parse(
      await this.#callers.until(caller, '/dac/v1/address', { asset }),
    ) as { address: string; tag?: string }
    const amount = this.#amount(asset, this.#place(asset).deposit)
    if (this.#byContract(asset)) await this.#pay(asset, address, amount.text)
    else await this.#send(asset, address, tag, amount)
  }

  /**
   * Whether a deposit is paid by a contract, so that the blocks do not list it, or only as a claim. An
   * unknown sender would hold a screened deposit until the operator releases it.
   */
  #byContract(asset: string): boolean {
    const { code, hasContracts } = this.#place(asset)
    const isPossible = hasContracts === true && asset === code && !this.products.has('screening')
    return isPossible && this.#environment.random.below(BY_CONTRACT_ONE_IN) === 0
  }

  /**
   * Pays an address by a contract. The audit finds it if it is not credited once: a reorganisation may
   * remove it, and a deposit may contain several.
   */
  async #pay(asset: string, address: string, amount: string): Promise<void> {
    this.#environment.noted('a contract paid')
    await this.#callers.outside(`contract ${asset} ${amount}`, () =>
      this.#environment.control({
        command: 'special',
        kind: 'contract',
        network: this.#place(asset).code,
        address,
        amount,
      }),
    )
  }

  async #invoice(caller: Caller, asset: string): Promise<void> {
    this.#environment.noted('an invoice was made')
    const amount = this.#amount(asset, this.#place(asset).deposit)
    const sequence = `invoice-${this.#count}`
    const answer = await this.#callers.until(caller, '/dac/v1/invoices', {
      asset,
      amount: amount.text,
      sequence_id: sequence,
    })
    const [, address] = /"address":"([^"]+)"/.exec(answer) ?? []
    const [, tag] = /"address_tag":"([^"]+)"/.exec(answer) ?? []
    if (address === undefined) throw new Error(`an invoice without an address: ${answer}`)
    await this.#send(asset, address, tag, amount)
  }

  async #rule(caller: Caller, asset: string): Promise<void> {
    const name = `${caller.apiKey} ${asset}`
    if (this.#ruled.has(name)) return this.#deposit(caller, asset)
    this.#ruled.add(name)
    this.#environment.noted('a rule was made')
    const place = this.#place(asset)
    await this.#callers.until(caller, '/dac/v1/auto-forwarding', {
      asset,
      min_amount: place.deposit,
      daily_cap: '100000',
      destination_address: place.to[asset],
      expires_at: new Date(this.#environment.schedule.nowMs + 86_400_000).toISOString(),
    })
    await this.#deposit(caller, asset)
  }

  /** Changes the risk level of receivers, or resets it. */
  async #screen(asset: string): Promise<void> {
    const { externalServices, random } = this.#environment
    const to = this.#place(asset).to[asset] as string
    if (random.below(2) === 0) {
      this.#environment.noted('an address became risky')
      externalServices.risks.set(to, 'SEVERE')
      return
    }
    externalServices.risks.delete(to)
    await this.unfreeze()
  }

  /** Lifts every freeze. */
  async unfreeze(): Promise<void> {
    const rows = await this.#callers.outside('look for freezes', () =>
      this.#environment.database.query<Freeze>(
        `select sub_account_id, asset, address, address_tag from frozen_addresses
          where unfrozen_at is null order by id`,
      ),
    )
    for (const { sub_account_id: id, asset, address, address_tag: tag } of rows) {
      const caller = this.#environment.callers.find(
        ({ subAccountId }) => subAccountId === id,
      ) as Caller
      this.#environment.noted('an address was unfrozen')
      await this.#callers
        .until(caller, '/dac/v1/unfreeze-address', {
          asset,
          address,
          ...(tag === null ? {} : { address_tag: tag }),
        })
        .catch((error: unknown) => {
          if (!(error instanceof Refused) || error.code !== 'NOT_FROZEN') throw error
        })
    }
  }

  async #stake(caller: Caller): Promise<void> {
    if (!this.#environment.assets.includes('TRX'))
      return this.#deposit(caller, this.#environment.assets[0] as string)
    const { random, database } = this.#environment
    const own = await this.#callers.outside('look for an address', () =>
      database.one<{ address: string }>(
        `select address from chain_addresses where network = 'TRX' and sub_account_id = $1
          and kind = 'omnibus'`,
        [caller.subAccountId],
      ),
    )
    if (!own) return
    const what = random.of(['stake', 'stake', 'unstake'])
    this.#environment.noted(`a ${what} was asked for`)
    await this.#callers.until(caller, `/dav/v1/${what}`, {
      asset: 'TRX',
      address: own.address,
      resource: random.of(['ENERGY', 'BANDWIDTH']),
      amount: 5,
      sequence_id: `${what}-${++this.#count}`,
    })
  }
}
