import { z } from 'zod'
import { OMNIBUS_INDEX } from '../derivation.ts'
import type { Fetch, LevelRates, RpcEndpoint, TaggedClient } from '../rpc.ts'
import { buildPayment as stellarPayment } from '../stellar/build.ts'
import { StellarClient } from '../stellar/rpc.ts'
import type { Network, UnsignedTransaction } from '../types.ts'
import { buildPayment as xrpPayment } from '../xrp/build.ts'
import { XrpClient } from '../xrp/rpc.ts'
import { digits, placed, sweeper } from './schemas.ts'
import type { Ask, Left, Planned, Sweeper } from './types.ts'

const account = z.strictObject({ ...placed, balance: digits, reserve: digits, sequence: digits })
type Account = z.infer<typeof account>
const shape = z.strictObject({
  accounts: z.array(account),
  fee: digits,
  validUntil: z.int(),
  creates: z.boolean(),
})
type Fixed = Parameters<typeof stellarPayment>[1]

/** Reads the accounts of the sub-accounts that exist on the chain. */
async function readAccounts(ask: Ask, client: TaggedClient): Promise<Account[]> {
  const accounts: Account[] = []
  for (const subAccount of ask.subAccounts) {
    const place = ask.placeAt(subAccount, OMNIBUS_INDEX)
    const state = await client.account(place.address)
    if (!state) continue
    const { balance, reserve, sequence } = state
    accounts.push({
      ...place,
      balance: balance.toString(),
      reserve: reserve.toString(),
      sequence: sequence.toString(),
    })
  }
  return accounts
}

/** Sweeper of XRP and Stellar, where each sub-account has one account, whose reserve stays. */
function tagged(
  make: (network: Network, endpoint: RpcEndpoint, fetch: Fetch) => TaggedClient,
  pay: (network: Network, payment: Fixed) => UnsignedTransaction,
  life: string,
): Sweeper {
  return sweeper(shape, {
    life,
    client: (_registry, network, endpoint, fetch) => make(network, endpoint, fetch),
    async look(ask: Ask) {
      const client = make(ask.network, ask.endpoint, ask.fetch)
      await client.probe()
      const accounts = await readAccounts(ask, client)
      const creates = (await client.account(ask.to)) === null
      const fee = ((await client.feeRates()) satisfies LevelRates).high.toString()
      return { accounts, creates, fee, validUntil: await client.validUntil() }
    },
    plan({ network, publicKeyAt, scan, to, tag }) {
      const { accounts, fee: reported, validUntil, creates } = scan
      const fee = BigInt(reported)
      const left: Left[] = []
      const transactions: Planned[] = []
      const asset = network.native_asset
      const richest = [...accounts].sort((a, b) =>
        BigInt(a.balance) - BigInt(a.reserve) > BigInt(b.balance) - BigInt(b.reserve) ? -1 : 1,
      )
      for (const { path, address, balance, reserve, sequence } of richest) {
        const amount = BigInt(balance) - BigInt(reserve) - fee
        if (amount <= 0n) {
          left.push({
            address,
            asset,
            amount: balance,
            why: 'at most the reserve, which the chain retains',
          })
          continue
        }
        // The first payment creates the destination's account; the others require an existing
        // account.
        const create = creates && transactions.length === 0
        if (creates && !create) continue
        left.push({ address, asset, amount: reserve, why: 'the reserve, which the chain retains' })
        transactions.push({
          unsigned: pay(network, {
            to,
            tag,
            amount,
            fee,
            sequence: BigInt(sequence),
            validUntil,
            create,
            publicKey: publicKeyAt(path),
            path,
          }),
          asset,
          from: address,
          amount: amount.toString(),
        })
      }
      return { transactions, left, more: creates && transactions.length > 0 }
    },
  })
}

export const xrp = tagged(
  (network, endpoint, fetch) => new XrpClient(network, endpoint, fetch),
  xrpPayment,
  '60 ledgers, four minutes',
)
export const stellar = tagged(
  (network, endpoint, fetch) => new StellarClient(network, endpoint, fetch),
  stellarPayment,
  'five minutes',
)
