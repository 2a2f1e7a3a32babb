import { RpcUnavailable, type JsonRpc } from '../rpc.ts'
import type { Asset, Network } from '../types.ts'
import { keyOf, TOKEN_PROGRAM, tokenAccountOf } from './address.ts'
import { isAmount, type Amount } from './payments.ts'

/** Maximum number of accounts of one `getMultipleAccounts`. */
const ACCOUNTS_MAX = 100
/**
 * The part of a token account that is read: mint (32 bytes), owner (32), amount (8, little-endian),
 * delegate (4 + 32), state (1; 0: not initialized). See the token program's `state.rs`.
 */
const TOKEN_BYTES = 109
const OWNER_AT = 32
const AMOUNT_AT = 64
const STATE_AT = 108

interface Account {
  lamports?: unknown
  owner?: unknown
  data?: unknown
}

/**
 * Returns the finalized balances of addresses in the asset's smallest unit, in their order. The
 * balance of a token is that of the associated token account, if the address still owns it.
 * @throws RpcUnavailable if the answer is not one account, or null, for each address; RpcRefused
 */
export async function readBalances(
  network: Network,
  call: JsonRpc,
  addresses: readonly string[],
  asset: Asset,
): Promise<bigint[]> {
  const isNative = asset.type === 'native'
  const mint = asset.contract_address as string
  const refuse = (problem: string): never => {
    throw new RpcUnavailable(`${network.code}: getMultipleAccounts returned ${problem}`)
  }
  const balances: bigint[] = []
  for (let at = 0; at < addresses.length; at += ACCOUNTS_MAX) {
    const owners = addresses.slice(at, at + ACCOUNTS_MAX)
    const { value } = await call<{ value?: unknown }>('getMultipleAccounts', [
      isNative ? owners : owners.map((owner) => tokenAccountOf(owner, mint)),
      {
        commitment: 'finalized',
        encoding: 'base64',
        dataSlice: { offset: 0, length: isNative ? 0 : TOKEN_BYTES },
      },
    ])
    if (!Array.isArray(value) || value.length !== owners.length)
      return refuse(`other than ${owners.length} accounts`)
    const accounts = value as (Account | null | undefined)[]
    for (const [index, account] of accounts.entries()) {
      if (account === undefined) return refuse('no account, and no null')
      if (account === null) balances.push(0n)
      else if (!isNative) balances.push(tokensOf(account, owners[index] as string, mint, refuse))
      else if (isAmount(account.lamports)) balances.push(BigInt(account.lamports as Amount))
      else return refuse('lamports that are not a whole number')
    }
  }
  return balances
}

/** Returns the tokens of an associated token account; 0 if the address does not own it (any more). */
function tokensOf(
  { owner: program, data }: Account,
  owner: string,
  mint: string,
  refuse: (problem: string) => never,
): bigint {
  if (typeof program !== 'string') return refuse('an account without owner')
  // Anyone can create an account without tokens at the address, by sending lamports to it.
  if (program !== TOKEN_PROGRAM) return 0n
  const text = Array.isArray(data) ? (data[0] as unknown) : null
  const bytes = Buffer.from(typeof text === 'string' ? text : '', 'base64')
  if (bytes.length !== TOKEN_BYTES) return refuse('a token account without its data')
  const isOwn =
    bytes.subarray(0, OWNER_AT).equals(keyOf(mint)) &&
    bytes.subarray(OWNER_AT, AMOUNT_AT).equals(keyOf(owner)) &&
    bytes[STATE_AT] !== 0
  return isOwn ? bytes.readBigUInt64LE(AMOUNT_AT) : 0n
}
