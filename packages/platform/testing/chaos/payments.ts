import { setTimeout as sleep } from 'node:timers/promises'
import { CustodyError, type Transaction } from '@custody/client'
import type { SeededRandom } from '../simulator/seeded-random.ts'
import type { Installation, Wallets } from './installation.ts'

/**
 * An asset that is sent: the receiver, the initial balance of a wallet, and the base amount, to
 * which each transfer adds one more smallest unit.
 */
interface PaymentTarget {
  asset: string
  network: string
  decimals: number
  to: string
  held: string
  unit: bigint
}

const PLACES: readonly PaymentTarget[] = [
  {
    asset: 'BTC',
    network: 'BTC',
    decimals: 8,
    to: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
    held: '20',
    unit: 10_000n,
  },
  {
    asset: 'ETH',
    network: 'ETH',
    decimals: 18,
    to: '0x00000000000000000000000000000000000000AA',
    held: '100',
    unit: 10n ** 15n,
  },
  {
    asset: 'XRP',
    network: 'XRP',
    decimals: 6,
    to: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh',
    held: '500',
    unit: 10_000n,
  },
  {
    asset: 'SOL',
    network: 'SOL',
    decimals: 9,
    to: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin',
    held: '100',
    unit: 2_000_000n,
  },
  {
    asset: 'TRX',
    network: 'TRX',
    decimals: 6,
    to: 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY',
    held: '5000',
    unit: 1_000_000n,
  },
  {
    asset: 'ADA',
    network: 'ADA',
    decimals: 6,
    to: 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz',
    held: '5000',
    unit: 1_500_000n,
  },
  {
    asset: 'USDT_ETH',
    network: 'ETH',
    decimals: 6,
    to: '0x00000000000000000000000000000000000000AA',
    held: '5000',
    unit: 1_000_000n,
  },
]

/**
 * A payment that the driver recorded before it sent the first request. Every amount is different,
 * so that the chain shows which payment was made.
 */
export interface PlannedPayment {
  wallets: Wallets
  place: PaymentTarget
  amount: string
  units: bigint
  sequence: string
  /** Ids in the responses; all must be equal. */
  ids: Set<string>
  id: string | null
  refused: string | null
  end: Transaction | null
}

const FIRST_PAUSE_MS = 200
const CALLERS = 8

export class Payments {
  readonly wanted: PlannedPayment[] = []
  /** Number of requests without success, by error code. */
  readonly unanswered = new Map<string, number>()
  readonly #installation: Installation
  readonly #places: readonly PaymentTarget[]
  #users: Wallets[] = []

  constructor(installation: Installation, assets: readonly string[]) {
    this.#installation = installation
    this.#places = assets.map((asset) => {
      const place = PLACES.find((each) => each.asset === asset)
      if (!place)
        throw new Error(`asset ${asset}: one of ${PLACES.map((each) => each.asset).join(', ')}`)
      return place
    })
  }

  get places(): readonly PaymentTarget[] {
    return this.#places
  }

  get users(): readonly Wallets[] {
    return this.#users
  }

  /** Creates wallets of two sub-accounts, with coins. */
  async open(): Promise<void> {
    this.#users = [
      await this.#installation.user('chaos', 'left'),
      await this.#installation.user('chaos', 'right'),
    ]
    for (const { client } of this.#users) {
      for (const { asset, held } of this.#places) {
        await client.createWallet(asset)
        const { address } = await client.createAddress(asset)
        await this.#installation.fund(asset, address, held)
      }
    }
    for (const { client } of this.#users) {
      for (const { asset } of this.#places) {
        for (
          const deadline = Date.now() + 120_000;
          Number((await client.wallets(asset))[0]?.balance ?? 0) === 0;
          await sleep(200)
        ) {
          if (Date.now() > deadline)
            throw new Error(`the deposit of ${asset} was not credited within 120 s`)
        }
      }
    }
  }

  want(random: SeededRandom): PlannedPayment {
    const place = random.of(this.#places)
    const units = place.unit + BigInt(this.wanted.length + 1)
    const one = 10n ** BigInt(place.decimals)
    const wanted: PlannedPayment = {
      wallets: random.of(this.#users),
      place,
      units,
      amount: `${units / one}.${String(units % one).padStart(place.decimals, '0')}`,
      sequence: `chaos-${this.wanted.length + 1}`,
      ids: new Set(),
      id: null,
      refused: null,
      end: null,
    }
    this.wanted.push(wanted)
    return wanted
  }

  /**
   * Sends the request once.
   * @returns whether there was a response
   */
  async ask(wanted: PlannedPayment): Promise<boolean> {
    try {
      const { id } = await wanted.wallets.client.createTransaction({
        asset: wanted.place.asset,
        amount: wanted.amount,
        destination_address: wanted.place.to,
        sequence_id: wanted.sequence,
      })
      wanted.ids.add(id)
      wanted.id ??= id
      return true
    } catch (error) {
      if (!(error instanceof CustodyError)) throw error
      const code =
        error.status === 0 ? `no answer (${error.code})` : `${error.status} ${error.code}`
      this.unanswered.set(code, (this.unanswered.get(code) ?? 0) + 1)
      // A final refusal is not caused by the injected faults, so it ends the run as a failure.
      if (error.status >= 400 && error.status < 500 && error.status !== 429) {
        wanted.refused = `${error.status} ${error.code} ${error.message}`
        return true
      }
      return false
    }
  }

  /** Repeats the request until there is a response. */
  async pay(wanted: PlannedPayment, signal: AbortSignal): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(2000, pauseMs * 2)) {
      if (await this.ask(wanted)) return
      await sleep(pauseMs)
    }
  }

  /** Sends this number of payments, a few concurrently, at about this number per second. */
  async send(
    count: number,
    perSecond: number,
    random: SeededRandom,
    signal: AbortSignal,
  ): Promise<void> {
    let left = count
    const begun = Date.now()
    await Promise.all(
      Array.from({ length: Math.min(CALLERS, count) }, async () => {
        while (left > 0 && !signal.aborted) {
          const at = count - left--
          const waitMs = begun + (at * 1000) / perSecond - Date.now()
          if (waitMs > 0) await sleep(waitMs)
          const wanted = this.want(random)
          // Occasionally sends a request twice concurrently, as a careless client does.
          await Promise.all(
            Array.from({ length: random.rarely(100) ? 2 : 1 }, () => this.pay(wanted, signal)),
          )
        }
      }),
    )
  }

  /** Returns the number of pending transfers, or null if no instance answers. */
  async pending(): Promise<number | null> {
    try {
      const pages = await Promise.all(
        this.#users.map(({ client }) =>
          client.transactions({ status: 'pending', type: 'Withdraw', limit: 1 }),
        ),
      )
      return pages.reduce((sum, { total }) => sum + Number(total), 0)
    } catch {
      return null
    }
  }
}
