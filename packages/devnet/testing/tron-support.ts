import { createHash } from 'node:crypto'
import { after, before } from 'node:test'
import { TronWeb } from 'tronweb'
import { freePorts } from '../../../testing/free-ports.ts'
import { removeHome, startDevnet, tempHome, type Running } from './support.ts'

// The local Tron chain, used with the published version of tronweb.
export let home = ''
export const USDT = 'TRsXgj6qYP5yWudH6UcYujx9yx2BWn3SKf'
export const USDC = 'TCLTqardMxkfW9kneJgkLaj3pUpEYuToEs'
export const SUN = 1_000_000
export const DAY_MS = 86_400_000
export let devnet: Running
let port = 0

export type Json = Record<string, unknown>
export type Info = {
  id?: string
  fee?: number
  blockNumber?: number
  result?: string
  receipt?: {
    energy_fee?: number
    energy_usage?: number
    energy_usage_total?: number
    net_fee?: number
    net_usage?: number
    result?: string
  }
  log?: unknown[]
  withdraw_expire_amount?: number
}
type Unsigned = Parameters<TronWeb['trx']['sign']>[0] & { txID: string }

/** Starts the local Tron chain for the tests of a file. @returns resolves when the chain runs */
export function useTron(): Promise<void> {
  const place = tempHome()
  home = place
  const started = freePorts(1).then(async ([reserved]) => {
    port = reserved as number
    await restart()
  })
  before(() => started)
  after(async () => {
    await devnet.stop()
    removeHome(place)
  })
  return started
}

/**
 * Starts the chain with the same home and port as before. The port is reserved until this process
 * ends.
 */
export async function restart(): Promise<void> {
  devnet = await startDevnet(home, { port })
}

export const client = (secret: string) =>
  new TronWeb({ fullHost: `${devnet.url}/trx`, privateKey: secret })
export const secretOf = (name: string) => createHash('sha256').update(name).digest('hex')
export const addressOf = (name: string) => TronWeb.address.fromPrivateKey(secretOf(name)) as string
export const post = async <T = Json>(path: string, body: Json = {}): Promise<T> =>
  (
    await fetch(`${devnet.url}/trx/${path}`, { method: 'POST', body: JSON.stringify(body) })
  ).json() as Promise<T>
export const mine = (blocks = 1) =>
  devnet.control<{ height: number; hash: string }>({ command: 'mine', network: 'TRX', blocks })
export const fund = (asset: string, name: string, amount: string) =>
  devnet.control<{ hash: string }>({ command: 'fund', asset, address: addressOf(name), amount })
export const infoOf = (id: string) => post<Info>('wallet/gettransactioninfobyid', { value: id })
export const balanceOf = async (name: string) =>
  Number(
    (await post('wallet/getaccount', { address: TronWeb.address.toHex(addressOf(name)) }))[
      'balance'
    ] ?? 0,
  )
export const headTime = async () =>
  (await post<{ block_header: { raw_data: { timestamp: number } } }>('wallet/getnowblock'))
    .block_header.raw_data.timestamp
export const text = (hex: unknown) => Buffer.from(String(hex), 'hex').toString('utf8')

export async function tokensOf(name: string, token = USDT): Promise<number> {
  const answer = await post<{ constant_result: string[] }>('wallet/triggerconstantcontract', {
    owner_address: addressOf(name),
    contract_address: token,
    function_selector: 'balanceOf(address)',
    parameter: TronWeb.address.toHex(addressOf(name)).slice(2).padStart(64, '0'),
    visible: true,
  })
  return Number(`0x${answer.constant_result[0]}`)
}

/**
 * Signs, broadcasts and mines a transaction. @returns the response of the broadcast and the result
 */
export async function send(
  name: string,
  unsigned: Promise<unknown> | unknown,
): Promise<{ id: string; answer: Json; info: Info }> {
  const tw = client(secretOf(name))
  const signed = await tw.trx.sign((await unsigned) as Unsigned)
  const answer = await post('wallet/broadcasttransaction', signed as unknown as Json)
  if (answer['result'] === true) await mine()
  return { id: (signed as Unsigned).txID, answer, info: await infoOf((signed as Unsigned).txID) }
}

export async function transferToken(
  name: string,
  to: string,
  amount: number,
  feeLimit = 50 * SUN,
  token = USDT,
): Promise<{ id: string; answer: Json; info: Info }> {
  const tw = client(secretOf(name))
  const { transaction } = await tw.transactionBuilder.triggerSmartContract(
    token,
    'transfer(address,uint256)',
    { feeLimit },
    [
      { type: 'address', value: addressOf(to) },
      { type: 'uint256', value: amount },
    ],
    addressOf(name),
  )
  return send(name, transaction)
}
