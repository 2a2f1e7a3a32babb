import { oneLine } from '@custody/chains/terminal'

/** Result of the transfer of one asset. Amounts are decimals; `fee` includes its asset's name. */
export interface TransferResult {
  asset: string
  hash: string
  fee: string
  /** Balance of the sender before and after the transfer. */
  before: string
  after: string
  received: string
  seconds: string
}

/** Returns rows with columns of equal width; the first row is the header. */
function table(cells: string[][]): string {
  const rows = cells.map((row) => row.map(oneLine))
  const widths = (rows[0] as string[]).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] as string).length)),
  )
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] as number))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/**
 * Returns the table of all transfers.
 * @param sent amount of each transfer, as a decimal
 */
export const transferTable = (results: readonly TransferResult[], sent: string): string =>
  `\n${table([
    ['asset', 'received', 'sent', 'network fee', 'left', 'customer got', 'seconds', 'hash'],
    ...results.map((result) => [
      result.asset,
      result.before,
      sent,
      result.fee,
      result.after,
      result.received,
      result.seconds,
      result.hash,
    ]),
  ])}\n\n`

/** Returns the sentence that sums up the demo, or the list of failures. */
export const summary = (transfers: number, failures: readonly string[]): string =>
  failures.length === 0
    ? `All ${transfers} transfers were confirmed, and the ledger agrees with the chains and the exchange.\n`
    : `${failures.length} failed:\n${failures.map((failure) => `  ${oneLine(failure)}`).join('\n')}\n`

/**
 * Returns commands for the reader to continue with.
 * @param user API key and file of the private key of the demo's sender
 * @param isStarted whether the demo has started the platform, which then ends with the demo
 */
export function nextSteps(user: { apiKey: string; keyFile: string }, isStarted: boolean): string {
  const payment = JSON.stringify({
    asset: 'ETH',
    amount: 0.1,
    destination_address: '0x00000000000000000000000000000000000000AA',
    destination_type: 'EXTERNAL',
    source_type: 'INTERNAL',
    sequence_id: 'mine-1',
  })
  // Without comments, because an interactive zsh refuses them.
  return `\nNext:${isStarted ? ' start the platform again with `npm start`, and in another terminal' : ''}
  export CUSTODY_API_KEY=${user.apiKey} CUSTODY_KEY=${user.keyFile}
  npx custody request GET '/dac/v1/wallets?asset=BTC'
  npx custody request GET /dac/v1/transactions
  npx custody request POST /dac/v1/transaction '${payment}'
  npx custody audit
The last command compares the books with the chains.
`
}
