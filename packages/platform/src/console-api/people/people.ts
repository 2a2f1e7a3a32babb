import { AddressLimit } from '../../core/http/rate-limit.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import type { Secrets } from '../../core/secrets.ts'
import { PASSWORD_COST, type PasswordCost } from './password.ts'
import { PasswordQueue } from './password-queue.ts'
import { Sessions } from './sessions.ts'

/** Maximum number of sign-in steps per minute of one client address, successful or not. */
const SIGN_INS_MAX = 60

/** Shared state of the control panel's endpoints. */
export interface People {
  sessions: Sessions
  /** Encrypts the secrets of authenticator apps. */
  secrets: Secrets
  passwordCost: PasswordCost
  /** Queue for every password hash. */
  hashing: PasswordQueue
  signIns: AddressLimit
  /** Rate limit of requests per minute of one session. */
  requests: AddressLimit
}

export function createPeople({
  database,
  environment,
  secrets,
  rateLimit,
  passwordCost = PASSWORD_COST,
}: {
  database: Database
  environment: Environment
  secrets: Secrets
  rateLimit: number
  passwordCost?: PasswordCost
}): People {
  return {
    sessions: new Sessions(database, environment),
    secrets,
    passwordCost,
    hashing: new PasswordQueue(environment),
    signIns: new AddressLimit(SIGN_INS_MAX),
    requests: new AddressLimit(rateLimit),
  }
}
