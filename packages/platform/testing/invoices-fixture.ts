import { randomUUID } from 'node:crypto'
import type { Application } from '../src/server/app/application.ts'
import type { Curve, FamilyName } from '@custody/chains'
import { parseJson, stringifyJson } from '@custody/request-auth'
import { unfreezeAddress } from '../src/custody/aml/unfreeze-address.ts'
import type { Database } from '../src/core/database/pool.ts'
import type { Caller, Endpoint } from '../src/core/http/endpoint.ts'
import { readBody } from '../src/core/http/validate.ts'
import { cancelInvoice } from '../src/commerce/invoices/cancel-invoice.ts'
import { chooseAsset } from '../src/commerce/invoices/choose-asset.ts'
import { createInvoice } from '../src/commerce/invoices/create-invoice.ts'
import { lookAtDue } from '../src/commerce/invoices/loop.ts'
import { markInvoice } from '../src/commerce/invoices/mark-invoice.ts'
import { getInvoice } from '../src/commerce/invoices/read-invoice.ts'
import { plain, PUBLIC_KEY } from './harness.ts'
import { newId, DepositFixture } from './deposits-support.ts'
import { WholeKeys } from '../../signer/testing/whole-keys.ts'

export interface Invoice {
  inv_id: string
  inv_status: string
  exception: string | null
  asset: string | null
  address: string | null
  address_tag: string | null
  crypto_amount: string | null
  due_amount: string | null
  paid_amount: string | null
  assets: { asset: string; crypto_amount: string; address: string | null }[]
  payments: {
    hash: string
    asset: string
    amount: string
    status: string
    counts: boolean
    note: string | null
    confirmations: number
    required: number
  }[]
  version: string
  [field: string]: unknown
}
export interface Answered<T> {
  body: T
  headers: Record<string, string>
}

const MINUTE_MS = 60_000

/**
 * Invoices of one sub-account with the real scanner, screening, crediting and database; only the
 * chain, keys and prices are scripted.
 */
export class InvoiceFixture extends DepositFixture {
  caller!: Caller
  /** Price of each coin in USD. */
  readonly prices = new Map<string, string>([
    ['ETH', '2000'],
    ['USDT', '1'],
    ['USDC', '1'],
    ['XRP', '2'],
    ['BTC', '60000'],
  ])
  readonly stale = new Set<string>()
  /** Name of the commit at which the process ends, once. */
  crashAt: string | null = null

  constructor(database: Database, family: FamilyName, seed = 77) {
    super(database, family)
    const keys = new WholeKeys(seed)
    Object.assign(this.services, {
      keys: { get: async (_workspace: string, curve: Curve) => ({ at: keys.at[curve] }) },
      prices: {
        price: (coin: string) => {
          const price = this.prices.get(coin)
          return price === undefined
            ? null
            : {
                price: BigInt(price) * 10n ** 12n,
                at: this.now - 1000,
                sources: [],
                stale: this.stale.has(coin),
              }
        },
      },
    })
    Object.assign(this.services.settings, { network: 'local' })
    Object.assign(this.services.environment, {
      checkpoint: (name: string) => {
        if (name !== this.crashAt) return
        this.crashAt = null
        throw new Error('the process ended here')
      },
    })
  }

  /** Empties the database and creates a sub-account with wallets of these assets. */
  async begin(assets: readonly string[] = this.assets): Promise<this> {
    await this.open()
    const one = async (sql: string, values: unknown[]) =>
      ((await this.database.one<{ id: string }>(sql, values)) as { id: string }).id
    const workspaceId = await one(`insert into workspaces (name) values ('shop') returning id`, [])
    const subAccountId = await one(
      `insert into sub_accounts (workspace_id, name, path_index) values ($1, 'main', 1)
        returning id`,
      [workspaceId],
    )
    for (const asset of assets) {
      await one(
        `insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, $3, $4)
          returning id`,
        [workspaceId, subAccountId, asset, this.network.code],
      )
    }
    const apiKey = randomUUID()
    await this.database.query(
      `insert into api_users (api_key, sub_account_id, role, public_key_pem)
        values ($1, $2, 'full', $3)`,
      [apiKey, subAccountId, PUBLIC_KEY],
    )
    this.caller = {
      apiKey,
      role: 'full',
      workspaceId,
      workspace: 'shop',
      subAccountId,
      subAccount: 'main',
      subAccountIndex: 1,
    }
    return this
  }

  async ask<T = Invoice>(
    endpoint: Endpoint<Application>,
    body: unknown = {},
    params?: unknown,
    query?: unknown,
  ): Promise<Answered<T>> {
    const read = endpoint.body ? readBody(endpoint.body, JSON.stringify(body)) : undefined
    const answer = await endpoint.handler(
      {
        caller: this.caller,
        body: read,
        query,
        params,
        signed: undefined as never,
        askedAt: this.services.environment.now(),
      },
      this.services,
    )
    const text = answer.text ?? stringifyJson(answer.body)
    return { body: plain(parseJson(text)) as T, headers: answer.headers ?? {} }
  }

  create = async (body: Record<string, unknown>): Promise<Invoice> =>
    (await this.ask(createInvoice, body)).body
  read = async (id: string): Promise<Invoice> => (await this.ask(getInvoice, {}, { id })).body
  cancel = async (id: string): Promise<Invoice> => (await this.ask(cancelInvoice, {}, { id })).body
  mark = async (id: string, status: 'settled' | 'invalid'): Promise<Invoice> =>
    (await this.ask(markInvoice, { status, reason: 'by hand' }, { id })).body
  choose = (id: string, asset: string) =>
    this.ask<{ selected: { address: string } | null }>(chooseAsset, { asset }, { inv_id: id })
  unfreeze = (asset: string, address: string) =>
    this.ask<unknown>(unfreezeAddress, { asset, address })

  /**
   * Produces a block with payments, each in its own transaction. Amounts are in the smallest unit.
   */
  pay(
    ...payments: {
      address: string | null
      asset: string
      amount: bigint
      tag?: string | null
      sender?: string
    }[]
  ): string[] {
    const transactions = payments.map(({ address, asset, amount, tag = null, sender }) => ({
      txid: newId(),
      outcome: [
        {
          position: asset === this.network.native_asset ? -1 : 0,
          asset,
          address: address as string,
          amount,
          tag,
          ...(sender === undefined
            ? {}
            : { sender, senders: { addresses: [sender], complete: true } }),
        },
      ],
    }))
    this.chain.mine(...transactions)
    return transactions.map(({ txid }) => txid)
  }

  /** Scans, credits deposits with enough confirmations, and checks invoices that are due. */
  override async settle(): Promise<void> {
    await super.settle()
    await this.look()
  }

  async look(): Promise<void> {
    // A failed check is scheduled for later, so this loop ends.
    while ((await lookAtDue(this.services)) > 0);
  }

  pass(minutes: number): void {
    this.now += minutes * MINUTE_MS
  }

  /** Returns the status and exception of an invoice as the API returns them. */
  async state(id: string): Promise<string> {
    const { inv_status, exception } = await this.read(id)
    return exception === null ? inv_status : `${inv_status} ${exception}`
  }

  /** Returns the types of an invoice's events, in order. */
  async events(id: string): Promise<string[]> {
    return (
      await this.database.query<{ type: string }>(
        `select type from events where payload->>'inv_id' = $1 order by id`,
        [id],
      )
    ).map(({ type }) => type.replace('invoice.', ''))
  }
}
