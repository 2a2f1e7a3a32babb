// A server that implements the platform's /checkout endpoints, with states that a test sets; the
// page's files and headers are those of the platform.
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Answer } from '@custody/site'
import { loadSite } from '../src/site/index.ts'
import type { CheckoutState, Choice, Payment, Selected } from '../src/state.ts'

interface Coin {
  ticker: string
  name: string
  network: string
  amount: string
  address: string
  tag?: string
  uri: string | null
  rate: string
}

const COINS: Record<string, Coin> = {
  BTC: {
    ticker: 'BTC',
    name: 'Bitcoin',
    network: 'Bitcoin',
    amount: '0.00083167',
    address: 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq',
    uri: 'bitcoin:bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq?amount=AMOUNT',
    rate: '60000',
  },
  ETH: {
    ticker: 'ETH',
    name: 'Ether',
    network: 'Ethereum',
    amount: '0.01663334',
    address: '0x52908400098527886E0F7030069857D2E4169EE7',
    uri: 'ethereum:0x52908400098527886E0F7030069857D2E4169EE7@1?value=16633340000000000',
    rate: '3000',
  },
  USDT_ETH: {
    ticker: 'USDT',
    name: 'Tether USD',
    network: 'Ethereum',
    amount: '49.885035',
    address: '0x52908400098527886E0F7030069857D2E4169EE7',
    rate: '1.0003',
    uri: 'ethereum:0xdAC17F958D2ee523a2206206994597C13D831ec7@1/transfer?address=0x52908400098527886E0F7030069857D2E4169EE7&uint256=49885035',
  },
  USDT_TRX: {
    ticker: 'USDT',
    name: 'Tether USD',
    network: 'Tron',
    amount: '49.885035',
    address: 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC',
    uri: null,
    rate: '1.0003',
  },
  USDT_SOL: {
    ticker: 'USDT',
    name: 'Tether USD',
    network: 'Solana',
    amount: '49.885035',
    address: '9B5XszUGdMaxCZ7uSQhPzdks5ZQSmWxrmzCSvtJ6Ns6g',
    rate: '1.0003',
    uri: 'solana:9B5XszUGdMaxCZ7uSQhPzdks5ZQSmWxrmzCSvtJ6Ns6g?amount=AMOUNT&spl-token=Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB',
  },
  XRP: {
    ticker: 'XRP',
    name: 'XRP',
    network: 'XRP Ledger',
    amount: '22.681819',
    address: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh',
    tag: '3042817',
    rate: '2.2',
    uri: 'xrpl:rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh?amount=AMOUNT&dt=3042817',
  },
}

interface AssetLine {
  asset_name: string
  takes_tag: boolean
  requires_tag: boolean
}
const registry = JSON.parse(
  readFileSync(new URL('../../chains/data/registry.json', import.meta.url), 'utf8'),
) as { assets: AssetLine[] }

/** Returns what the registry states about an asset's tags, as the platform sends it. */
const tagsOf = (asset: string) => {
  const line = registry.assets.find(({ asset_name: name }) => name === asset)
  if (line === undefined) throw new Error(`the registry has no asset ${asset}`)
  return { takes_tag: line.takes_tag, requires_tag: line.requires_tag }
}

const choiceOf = (asset: string): Choice => {
  const { ticker, name, network, amount } = COINS[asset] as Coin
  return {
    asset,
    ticker,
    name,
    network: asset,
    network_name: network,
    ...tagsOf(asset),
    crypto_amount: amount,
  }
}

/** Returns the selection after a payer has chosen an asset. */
export function selectedOf(asset: string, more: Partial<Selected> = {}): Selected {
  const { ticker, name, network, amount, address, tag, uri, rate } = COINS[asset] as Coin
  const due = more.due_amount ?? amount
  return {
    asset,
    ticker,
    name,
    network: asset,
    network_name: network,
    address,
    address_tag: tag ?? null,
    tag_name: tag === undefined ? null : 'destination tag',
    crypto_amount: amount,
    paid_amount: '0',
    due_amount: due,
    payment_uri: uri?.replace('AMOUNT', due) ?? null,
    rate,
    rate_at: '2026-11-22T14:00:00.000Z',
    ...more,
  }
}

export const paymentOf = (asset: string, amount: string, more: Partial<Payment> = {}): Payment => ({
  hash: 'A4C1F9E2B07D5586310FE9D4C2B7A68510E3F4D29C8B7A6655443322110FFEE9',
  asset,
  ticker: (COINS[asset] as Coin).ticker,
  amount,
  status: 'detected',
  confirmations: 0,
  required: 6,
  counts: true,
  seen_at: '2026-11-22T14:03:10.000Z',
  explorer_url: null,
  ...more,
})

type Stored = Omit<CheckoutState, 'now'>

/** Serves invoices whose state a test sets. */
export class Fixture {
  base = ''
  /** Origins that may show the page in a frame. */
  frameAncestors: string[] = []
  /** Status of the response to a choice of an asset. */
  choiceStatus = 200
  streams = true
  /**
   * Offset of the server's clock in milliseconds, so that a test can let an invoice expire without
   * waiting.
   */
  skewMs = 0
  readonly requests: string[] = []
  readonly #invoices = new Map<string, Stored>()
  readonly #listeners = new Map<string, Set<ServerResponse>>()
  readonly #site = loadSite()
  readonly #server = createServer((request, response) => void this.#serve(request, response))

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.base = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  stop(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  /** Creates an invoice. @returns the address of its page */
  add(id: string, more: Partial<Stored> = {}): string {
    const now = Date.now() + this.skewMs
    this.#invoices.set(id, {
      inv_id: id,
      inv_status: 'Pending',
      exception: null,
      merchant: 'Nordlicht Kaffee',
      memo: '1 kg Espresso, ganze Bohne',
      order_id: '2026-1147',
      fiat: 'EUR',
      fiat_amount: '49.90',
      created_at: new Date(now).toISOString(),
      expiry: new Date(now + 30 * 60_000 - 2000).toISOString(),
      assets: Object.keys(COINS).map(choiceOf),
      selected: null,
      payments: [],
      success_url: null,
      failed_url: null,
      cancelled: false,
      ...more,
    })
    return `${this.base}/checkout/${id}`
  }

  /** Changes an invoice, and sends the change to open streams. */
  set(id: string, more: Partial<Stored>): void {
    this.#invoices.set(id, { ...(this.#invoices.get(id) as Stored), ...more })
    for (const stream of this.#listeners.get(id) ?? [])
      stream.write(`event: state\ndata: ${this.#state(id)}\n\n`)
  }

  /** Closes every stream, as a proxy does. */
  cut(): void {
    for (const streams of this.#listeners.values()) for (const stream of streams) stream.destroy()
  }

  #state = (id: string): string =>
    JSON.stringify({
      ...this.#invoices.get(id),
      now: new Date(Date.now() + this.skewMs).toISOString(),
    })

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://here')
    this.requests.push(`${request.method} ${pathname}`)
    const encodings = request.headers['accept-encoding'] as string | undefined
    const send = ({ status, headers, body }: Answer) =>
      response.writeHead(status, headers).end(body)
    const json = (status: number, text: string) =>
      send({
        status,
        headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
        body: text,
      })
    if (pathname === '/widget.js')
      return void send(this.#site.widget(encodings, request.headers['if-none-match']))
    const asset = /^\/checkout\/assets\/([^/]+)$/.exec(pathname)?.[1]
    if (asset !== undefined)
      return void send(this.#site.asset(asset, encodings) ?? { status: 404, headers: {}, body: '' })
    const [, id = '', rest] = /^\/checkout\/([^/]+)(?:\/(\w+))?$/.exec(pathname) ?? []
    const isThere = this.#invoices.has(id)
    if (rest === undefined && id !== '')
      return void send(this.#site.page(isThere ? this.frameAncestors : null, encodings))
    if (!isThere) return void json(404, '{}')
    if (rest === 'state') return void json(200, this.#state(id))
    if (rest === 'asset') {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const { asset } = JSON.parse(Buffer.concat(chunks).toString()) as { asset: string }
      if (this.choiceStatus !== 200) return void json(this.choiceStatus, '{}')
      this.set(id, { selected: selectedOf(asset) })
      return void json(200, this.#state(id))
    }
    if (rest === 'events' && this.streams) {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
      response.write(`event: state\ndata: ${this.#state(id)}\n\n`)
      const all = this.#listeners.get(id) ?? new Set()
      this.#listeners.set(id, all.add(response))
      response.once('close', () => all.delete(response))
      return
    }
    json(503, '{}')
  }
}
