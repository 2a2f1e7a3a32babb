import { query } from '../api/http.ts'
import { mirror } from '../api/scope.ts'
import { Icon } from './icons.tsx'

/** The statement of a wallet or a gas tank; times in seconds since the Unix epoch. */
export type StatementOf = {
  /** Default: all wallets or gas tanks. */
  asset?: string
  account?: 'gas_tank'
  from?: number
  to?: number
}

/** Returns the address from which a statement is downloaded as CSV. */
export const statementAt = (of: StatementOf): string =>
  mirror(`/dac/v1/statement/export${query({ ...of })}`)

/** Downloads a statement: opening balance, every movement, closing balance. */
export const StatementLink = ({ of }: { of: StatementOf }) => (
  <a class="button secondary" href={statementAt(of)} download>
    <Icon name="download" />
    <span>Statement</span>
  </a>
)
