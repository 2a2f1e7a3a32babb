import {
  addressAt,
  cardano,
  evm,
  parseAmount,
  solana,
  stellar,
  traitsOf,
  tron,
  utxo,
  xrp,
  type Asset,
  type Network,
  type TronClient,
  type UnsignedTransaction,
} from '@custody/chains'
import { Transaction } from 'bitcoinjs-lib'
import { registry } from '../../../../../signer/testing/signer-cluster.ts'
import type { WholeKeys } from '../../../../../signer/testing/whole-keys.ts'
import type { SeededRandom } from '../../seeded-random.ts'
import { CLOCK_MS, type Ledgers } from './ledgers.ts'

export const CHANGE_INDEX = 0x7fffffff
/** Sub-accounts with API keys; 0 is the gas tank. */
export const SUB_ACCOUNTS = [1, 2] as const
/** Deposit addresses of each sub-account, besides the omnibus address. */
const DEPOSITS = [1, 2] as const

/** A coin of a chain with unspent outputs. */
interface Coin {
  txid: string
  vout: number
  value: bigint
  path: number[]
  address: string
  /** The transaction that created it, or the body of that transaction, in hex. */
  previous: string
}

/** What a transaction is to do; fields that a family does not have are ignored. */
export interface Transfer {
  /** Ticker; absent: the native coin. */
  asset?: string
  path: number[]
  to: string
  tag: string | null
  amount: bigint
  fee: bigint
  nonce: bigint
  /** The coins to spend; all of their value that is neither paid nor a fee returns as change. */
  coins: readonly Coin[]
  /** With coins: everything but the fee goes to `to`. */
  isWhole: boolean
  /** With coins: where change goes; null: to the change address of the sub-account. */
  change: { path: number[]; address: string } | null
}

/** Value of each coin, and the smallest output, by network. */
const COINS: Readonly<Record<string, { value: string; least: bigint }>> = {
  BTC: { value: '0.5', least: 600n },
  ADA: { value: '500', least: 1_000_000n },
}

/** Initial balances in coins, by family; null: deposits have no addresses of their own. */
const FUNDS: Readonly<Record<string, { omnibus: string; deposit: string | null }>> = {
  evm: { omnibus: '20', deposit: '2' },
  tron: { omnibus: '5000', deposit: '200' },
  xrp: { omnibus: '5000', deposit: null },
  stellar: { omnibus: '5000', deposit: null },
  solana: { omnibus: '20', deposit: '1' },
}

/** Number of the foreign address of the hostile platform. */
export const THIEF = 4

/** Gas of a transfer of the native coin, and of a token. */
export const GAS = 21_000n
export const TOKEN_GAS = 100_000n
/** Initial balances in tokens. */
const TOKENS = { omnibus: '1000', deposit: '100' } as const
/** Cost of the bandwidth of a Tron transaction, at most, in sun. */
const BANDWIDTH_SUN = 1_000_000n

/** The wallets of one workspace on one network, as the platform sees them. */
export class Wallets {
  readonly network: Network
  readonly coins: Coin[] = []
  /** Next nonce of each account, by path. */
  readonly nonces = new Map<string, bigint>()
  /** Paths of accounts of which a transaction was signed. */
  readonly used = new Set<string>()
  readonly #keys: WholeKeys
  readonly #foreign: WholeKeys
  readonly #ledgers: Ledgers
  #reference: Awaited<ReturnType<TronClient['reference']>> | null = null
  #blockhash = ''
  /** Last slot of transactions of Cardano. */
  #validUntil = 0n
  #made = 0

  /** Ticker of the token that is moved too; null: none. */
  readonly token: string | null

  constructor(
    { code, token }: { code: string; token: string | null },
    keys: WholeKeys,
    foreign: WholeKeys,
    ledgers: Ledgers,
  ) {
    this.token = token
    this.network = registry.network(code) as Network
    this.#keys = keys
    this.#foreign = foreign
    this.#ledgers = ledgers
  }

  pathOf(sub: number, index = 0): number[] {
    return [sub, this.network.chain_index, index]
  }

  address(path: readonly number[]): string {
    return addressAt(this.network, this.#keys.keys[this.network.curve], [...path])
  }

  /** Returns an address outside of the workspace. */
  sink(number: number): string {
    return addressAt(this.network, this.#foreign.keys[this.network.curve], [
      number,
      this.network.chain_index,
      0,
    ])
  }

  /** All own addresses, by the sub-account that they belong to. */
  owned(sub: number): string[] {
    const indexes = sub === 0 ? [0] : [0, ...DEPOSITS, CHANGE_INDEX]
    return [...new Set(indexes.map((index) => this.address(this.pathOf(sub, index))))]
  }

  /** Pays the initial balances: enough for every payment of a run. */
  async fund(): Promise<void> {
    const { code, family } = this.network
    const ledger = this.#ledgers.of(code)
    if (COINS[code]) return this.#fundCoins()
    const { omnibus, deposit } = FUNDS[family]!
    const subs = traitsOf(this.network).feesFrom === 'tank' ? [0, ...SUB_ACCOUNTS] : SUB_ACCOUNTS
    for (const sub of subs) await ledger.fund(this.address(this.pathOf(sub)), omnibus)
    if (deposit !== null)
      for (const sub of SUB_ACCOUNTS)
        for (const index of DEPOSITS)
          await ledger.fund(this.address(this.pathOf(sub, index)), deposit)
    await this.#fundTokens()
    for (const sub of subs) await this.#readNonce(this.pathOf(sub))
    if (family === 'tron') this.#reference = await ledger.client.reference!()
    if (family === 'solana') this.#blockhash = (await ledger.client.lifetime!()).blockhash
  }

  async #fundCoins(): Promise<void> {
    const { code } = this.network
    const { client, fund } = this.#ledgers.of(code)
    const { value: amount } = COINS[code]!
    const value = parseAmount(amount, (registry.asset(code) as Asset).decimals)
    for (const sub of SUB_ACCOUNTS)
      for (let at = 0; at < (sub === 1 ? 8 : 2); at++) {
        const path = this.pathOf(sub, at % 2)
        const address = this.address(path)
        const txid = await fund(address, amount)
        const previous = await (client.rawTransaction ?? client.transactionBody)!.call(client, txid)
        const coin = { txid, value, path, address, previous }
        const vout = [0, 1, 2].find((each) => this.#pays(previous, each, coin))!
        this.coins.push({ ...coin, vout })
      }
    if (client.validUntil) this.#validUntil = BigInt(await client.validUntil())
  }

  /** Whether an output of a transaction is a coin. */
  #pays(previous: string, vout: number, { address, value, txid }: Omit<Coin, 'vout'>): boolean {
    if (this.network.family === 'cardano')
      return cardano.unspendable(this.network, { txid, vout, value, address }, previous) === null
    const script = utxo.scriptOf(this.network, address)
    const output = Transaction.fromHex(previous).outs[vout]
    return output !== undefined && Buffer.from(output.script).equals(script)
  }

  async #fundTokens(): Promise<void> {
    const { token } = this
    if (token === null) return
    const ledger = this.#ledgers.of(this.network.code)
    for (const sub of SUB_ACCOUNTS) {
      await ledger.fund(this.address(this.pathOf(sub)), TOKENS.omnibus, token)
      for (const index of DEPOSITS)
        await ledger.fund(this.address(this.pathOf(sub, index)), TOKENS.deposit, token)
    }
  }

  async #readNonce(path: number[]): Promise<void> {
    const { client } = this.#ledgers.of(this.network.code)
    const account = (await client.account?.(this.address(path))) as { sequence?: bigint } | null
    this.nonces.set(path.join('/'), account?.sequence ?? 0n)
  }

  /** Draws a nonce of an account: the next one, one that was used, or one that leaves a gap. */
  drawNonce(random: SeededRandom, path: readonly number[]): bigint {
    const next = this.nonces.get(path.join('/')) ?? 0n
    const draw = random.below(10)
    // Nodes know no nonce of an account before its first transaction. A wrong one would exclude all others.
    if (draw < 6 || !this.used.has(path.join('/'))) return next
    if (draw === 9) return next + 1n
    const earlier = next - 1n - BigInt(random.below(3))
    return earlier > 0n ? earlier : 0n
  }

  /** Builds a transaction; null if the family cannot express it. */
  build(o: Transfer): UnsignedTransaction | null {
    const { network } = this
    const publicKey = this.#keys.at[network.curve](o.path)
    const asset = registry.asset(o.asset ?? network.native_asset) as Asset
    const isToken = asset.type === 'token'
    switch (network.family) {
      case 'utxo':
      case 'cardano':
        return this.#spend(o)
      case 'evm': {
        const gas = isToken ? TOKEN_GAS : GAS
        const price = o.fee / gas
        return evm.buildTransfer(network, {
          asset,
          to: o.to,
          amount: o.amount,
          nonce: o.nonce,
          gas,
          // The block builder takes all of it.
          fee: { maxFeePerGas: price, maxPriorityFeePerGas: price },
          path: o.path,
        })
      }
      case 'xrp':
        return xrp.buildPayment(network, {
          to: o.to,
          tag: o.tag,
          amount: o.amount,
          fee: o.fee,
          sequence: o.nonce,
          validUntil: 4_000_000,
          publicKey,
          path: o.path,
        })
      case 'tron':
        if (o.amount === 0n) return null
        return tron.buildTransfer(network, {
          reference: { ...this.#reference!, timestamp: this.#reference!.timestamp + this.#made++ },
          path: o.path,
          publicKey,
          asset,
          to: o.to,
          amount: o.amount,
          ...(isToken ? { feeLimit: o.fee > BANDWIDTH_SUN ? o.fee - BANDWIDTH_SUN : o.fee } : {}),
        })
      case 'stellar':
        return stellar.buildPayment(network, {
          to: o.to,
          tag: o.tag,
          amount: o.amount,
          fee: o.fee,
          sequence: o.nonce,
          validUntil: CLOCK_MS / 1000 + 240,
          create: false,
          publicKey,
          path: o.path,
        })
      case 'solana': {
        const units = solana.unitsOf(isToken)
        return solana.buildTransfer(network, {
          asset,
          to: o.to,
          amount: o.amount,
          blockhash: this.#blockhash,
          unitPrice: solana.unitPriceFor(o.fee, units),
          publicKey,
          path: o.path,
        })
      }
      default:
        return null
    }
  }

  #spend({
    coins,
    to,
    amount,
    fee,
    isWhole,
    change: place,
    path: [sub],
  }: Transfer): UnsignedTransaction | null {
    const total = coins.reduce((sum, { value }) => sum + value, 0n)
    const paid = isWhole ? total - fee : amount
    const change = total - paid - fee
    const { least } = COINS[this.network.code]!
    if (coins.length === 0 || paid < least || change < 0n || (change > 0n && change < least))
      return null
    const changePath = place?.path ?? this.pathOf(sub!, CHANGE_INDEX)
    const order = {
      to,
      amount: paid,
      changeAddress: place?.address ?? this.address(changePath),
      changePath,
      previous: new Map(coins.map(({ txid, previous }) => [txid, previous])),
    }
    if (this.network.family === 'cardano') {
      const plain = coins.map((coin) => ({ ...coin, riders: null }))
      const selection = { coins: plain, change, fee, assets: new Map<string, bigint>(), size: 0 }
      return cardano.buildTransfer(this.network, { ...order, selection, ttl: this.#validUntil })
    }
    return utxo.buildTransfer(this.network, {
      ...order,
      selection: { utxos: coins, change, fee } as unknown as Parameters<
        typeof utxo.buildTransfer
      >[1]['selection'],
    })
  }
}
