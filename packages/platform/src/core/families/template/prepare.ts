import { buildTransfer, type TemplateClient } from '@custody/chains/family/template'
import type { LevelRates, Network } from '@custody/chains'
import {
  fail,
  type Built,
  type ChainContext,
  type Prepared,
  type Task,
} from '../../engine/chain.ts'
import { chosenRate } from '../../engine/fee-rate.ts'
import { sequenceOf } from '../sequence.ts'
import { sourcePath } from '../source-path.ts'

/** One network's chain, as shared by the modules of this folder. */
export interface Template {
  context: ChainContext
  network: Network
  client: TemplateClient
  rates(): Promise<LevelRates>
}

/**
 * Prepares a payment, or a sweep, which empties a deposit address and pays its fee out of the
 * amount moved. This function queries the chain and fixes nothing; `build` fixes the transaction
 * under the account's lock and makes no queries to the chain.
 */
export async function prepare(
  chain: Template,
  { row, asset, sweeps, amount }: Task,
): Promise<Prepared> {
  const { context, network, client } = chain
  const [account, to] = [row.source_id as string, row.destination_id as string]
  const fee = await chosenRate(chain, row.fee_rate, row.fee_level)
  const { sequence: next } = await client.account(account)
  const key = await context.keys.get(row.workspace_id, network.curve)
  const path = await sourcePath(context.database, row, network)
  // This query comes last, because the validity period starts when the chain responds.
  const validUntil = await client.validUntil()
  return {
    kind: 'prepared',
    lock: 'account',
    ...(sweeps ? { cost: { worst: fee, own: true } } : {}),
    async build(tx, unswept) {
      const moved = sweeps ? unswept - fee : amount
      if (moved <= 0n) return fail('the remaining balance is worth less than the fee of a sweep')
      const sequence = await sequenceOf(tx, row, account, next)
      if (typeof sequence !== 'bigint') return sequence
      const unsigned = buildTransfer(network, {
        to,
        amount: moved,
        fee,
        sequence,
        validUntil,
        publicKey: key.at(path),
        path,
      })
      const built: Built = {
        kind: 'built',
        unsigned,
        worst: fee,
        account,
        nonce: sequence,
        validUntil,
        fee,
      }
      if (sweeps) return { ...built, amount: moved }
      // `hold`: amount that the wallet reserves in addition, until the chain has reported the
      // actual fee.
      return {
        ...built,
        hold: {
          wallet: row.wallet_id as string,
          asset,
          amount: fee,
          noted: 'fee_reserve',
          reserve: 0n,
        },
      }
    },
  }
}
