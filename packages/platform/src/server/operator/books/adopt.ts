import {
  formatAmount,
  parseAmount,
  traitsOf,
  validateAddress,
  type Asset,
  type Registry,
} from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import { accountDifferences } from '../../audit/accounts.ts'
import type { Difference } from '../../audit/report.ts'
import { adoptSurplus, NotAdoptable } from '../../../custody/deposits/adopted.ts'
import { assertUncontradicted, Contradicted } from '../../../custody/deposits/contradiction.ts'
import type { OwnAddress } from '../../../custody/deposits/record.ts'
import type { Chain } from '../../../core/engine/chain.ts'
import type { Environment } from '../../../core/environment.ts'
import type { Database, Queryable } from '../../../core/database/pool.ts'
import type { Networks } from '../../../core/engine/networks.ts'
import type { Logger } from 'pino'
import type { Notifier } from '../../../core/ledger/notifier.ts'
import type { Forwards, Invoices } from '../../../core/engine/interfaces/listeners.ts'
import type { Prices } from '../../../custody/prices/prices.ts'
import type { Details } from '../../../console-api/people/audit-chain.ts'
import { OPERATOR, writeAudit } from '../../../console-api/people/audit-log.ts'
import { argument, OperatorError, type Command } from '../command.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  log: Logger
  work: Notifier
  forwards: Forwards
  invoices: Invoices
  prices: Prices
}

/**
 * Number of attempts to find no deficit. Coins in transit are booked within a few seconds; a
 * deficit that remains is a real one.
 */
const ATTEMPTS_MAX = 15
const PAUSE_MS = 1000

function amountOf(typed: string, { asset_name: name, decimals }: Asset): bigint {
  let amount: bigint
  try {
    amount = parseAmount(typed, decimals)
  } catch (error) {
    throw new OperatorError(`--amount: ${reasonOf(error)}`)
  }
  if (amount <= 0n) throw new OperatorError(`--amount: must be an amount of ${name} above zero`)
  return amount
}

/**
 * Checks that no other address of the workspace has a deficit. After a deficit only the balances
 * that differed are read again, until it is gone; then all are.
 * @throws OperatorError if other addresses hold less than the ledger states, because then coins
 *   moved between the workspace's own addresses
 */
async function assertNoDeficit(
  services: Services,
  chain: Chain,
  workspace: string,
  asset: string,
): Promise<void> {
  let again: { balances?: ReadonlySet<string> } = {}
  for (let attempt = 1; ; attempt++) {
    const differences: Difference[] = []
    const scope = { workspace, asset, ...again }
    const { differing } = await accountDifferences(services, chain, differences, scope)
    const deficit = differences.find(({ kind }) => kind === 'deficit')
    if (!deficit) {
      if (again.balances === undefined) return
      again = {}
      continue
    }
    if (attempt >= ATTEMPTS_MAX) {
      throw new OperatorError(
        `${workspace} also has a deficit of ${asset}, at ${deficit.subject}, so the coins may only have moved between its addresses. Explain the deficit first ("npx custody audit" lists it)`,
      )
    }
    again = { balances: new Set(differing) }
    await services.environment.sleep(PAUSE_MS)
  }
}

/** Checks that the transaction that is recorded for an adopted deposit was executed. */
async function assertCarriedOut({ network, client }: Chain, txid: string): Promise<void> {
  let status
  try {
    status = await client.status(txid, undefined, { fee: false })
  } catch (error) {
    throw new OperatorError(`--txid: ${reasonOf(error)}`)
  }
  if (status.state !== 'included')
    throw new OperatorError(`--txid: no block of ${network.code} contains ${JSON.stringify(txid)}`)
  if (!status.succeeded)
    throw new OperatorError(`--txid: the transaction failed on ${network.code} and moved nothing`)
}

/** Returns what writes the entry of an adoption into the audit log. */
const auditOf =
  ({ workspace_id: workspace, address }: OwnAddress, details: Details) =>
  (tx: Queryable, { id }: { id: string }): Promise<void> =>
    writeAudit(tx, workspace, OPERATOR, {
      action: 'suspense.adopted',
      object: id,
      details: { ...details, address },
    })

/** Returns what the operator is told when a surplus was not recorded; other errors unchanged. */
function refusalOf(error: unknown, asset: Asset): unknown {
  if (error instanceof Contradicted)
    return new OperatorError(`--asset: nothing can be recorded now: ${error.message}`)
  if (!(error instanceof NotAdoptable)) return error
  if (error.surplus === null) return new OperatorError(error.message)
  const more =
    error.surplus > 0n ? `${formatAmount(error.surplus, asset.decimals)} more` : 'no more'
  return new OperatorError(
    `--amount: the address has ${more} than the ledger records; --amount must be the complete surplus`,
  )
}

/**
 * Books the surplus of an address over the ledger as a deposit, such as ether that a contract has
 * sent.
 */
export const adoptIntoBooks: Command<Services> = async (services, input) => {
  const [ticker, typed, address, txid] = [
    argument(input, 'asset') ?? '',
    argument(input, 'amount') ?? '',
    argument(input, 'address') ?? '',
    argument(input, 'txid'),
  ]
  const asset = services.registry.asset(ticker)
  if (!asset)
    throw new OperatorError(
      `--asset: ${JSON.stringify(ticker)} is not an asset; use one such as ETH or USDT_ETH`,
    )
  const { network: code } = asset
  const network = services.registry.network(code)
  if (!network || !services.networks.has(code))
    throw new OperatorError(
      `--asset: no endpoint is configured for the network ${code}; add networks.${code}.url to custody.config.json`,
    )
  if (traitsOf(network).deposits === 'spendable') {
    throw new OperatorError(
      `--asset: a surplus on ${code} cannot be recorded, because every deposit there has a transaction: find it with "npx custody rescan ${code} --from HEIGHT"`,
    )
  }
  const amount = amountOf(typed, asset)
  const valid = validateAddress(services.registry, ticker, address)
  if (!valid.valid) throw new OperatorError(`--address: ${valid.reason}`)
  const owner = await services.database.one<OwnAddress & { workspace: string }>(
    `select c.address, c.workspace_id, c.sub_account_id, c.path_index, c.kind, w.name workspace
      from chain_addresses c
      join workspaces w on w.id = c.workspace_id where c.network = $1 and c.address = $2`,
    [code, valid.address],
  )
  if (!owner)
    throw new OperatorError(
      `--address: ${JSON.stringify(address)} is not an address of this platform on ${code}`,
    )
  const chain = services.networks.get(code)
  if (txid !== null) await assertCarriedOut(chain, txid)
  try {
    await assertUncontradicted(services.database, code)
    await assertNoDeficit(services, chain, owner.workspace, asset.asset_name)
    const row = await adoptSurplus(services, chain, {
      owner,
      asset,
      amount,
      hash: txid,
      adopted: auditOf(owner, { asset: ticker, amount: typed, txid }),
    })
    services.log.warn(
      { transaction: row.id, address: owner.address, asset: ticker, amount: row.amount, txid },
      'the operator recorded the surplus of an address as a deposit',
    )
    return {
      id: row.id,
      asset: ticker,
      amount: formatAmount(amount, asset.decimals),
      address: owner.address,
      workspace: owner.workspace,
    }
  } catch (error) {
    throw refusalOf(error, asset)
  }
}
