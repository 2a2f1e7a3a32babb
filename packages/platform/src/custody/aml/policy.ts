import type { Queryable } from '../../core/database/pool.ts'
import type { Aml } from './aml.ts'
import type { ProviderName, RiskLevel } from './levels.ts'

interface Services {
  aml: Aml
}

export type Direction = 'deposit' | 'withdrawal'

/** A row of `aml_settings`. */
export interface AmlRow {
  provider: ProviderName
  sealed_token: Buffer
  risk_levels: RiskLevel[]
  screen_deposits: boolean
  screen_withdrawals: boolean
  /** Deposits worth less, in millionths of a USD, are credited although a sender is unknown; 0: none. */
  unknown_sender_usd: string
  updated_at: Date
}

export async function readPolicy(
  database: Queryable,
  workspace: string,
  subAccountId: string,
): Promise<AmlRow | undefined> {
  return database.one<AmlRow>(
    `select provider, sealed_token, risk_levels, screen_deposits, screen_withdrawals,
       unknown_sender_usd::text, updated_at
    from aml_settings where workspace_id = $2 and sub_account_id = $1`,
    [subAccountId, workspace],
  )
}

export const isOn = (policy: AmlRow | undefined, direction: Direction): policy is AmlRow =>
  policy !== undefined &&
  (direction === 'deposit' ? policy.screen_deposits : policy.screen_withdrawals)

/** Returns the context to which a token is sealed. */
export const tokenOwner = (subAccountId: string) => `aml ${subAccountId}`

export const sealToken = (services: Services, subAccountId: string, token: string): Buffer =>
  services.aml.secrets.seal(tokenOwner(subAccountId), token)
export const openToken = (services: Services, subAccountId: string, policy: AmlRow): string =>
  services.aml.secrets.open(tokenOwner(subAccountId), policy.sealed_token)
