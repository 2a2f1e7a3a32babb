import type { Queryable, Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { People } from './people.ts'
import type { Reply } from '../../core/http/endpoint.ts'
import { writeAuditEverywhere } from './audit-log.ts'
import { cookieHeaders } from './cookie.ts'
import { countTry, reset, type Trier } from './failures.ts'
import { isPassword } from './password.ts'
import { presentSession } from './present.ts'
import { takeRecoveryCode } from './recovery-codes.ts'
import { actorOf, type From, type Session } from './sessions.ts'
import { beginStep, endStep, tryStep } from './steps.ts'
import { stepOfCode, takeStep } from './totp.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  environment: Environment
  database: Database
  people: People
}

/** The factor that a person used. */
export type Factor = 'totp' | 'recovery' | 'passkey'

export const ownerOfTotp = (personId: string): string => `authenticator ${personId}`

/**
 * Counts a step of a sign-in.
 * @throws ApiError `RATE_LIMITED` if the client's address has made too many steps in this minute
 */
export function countSignIn(
  { people, environment }: Pick<Services, 'environment' | 'people'>,
  { ip }: Pick<From, 'ip'>,
): void {
  const { exceeded, reset } = people.signIns.count(ip, environment.now())
  if (!exceeded) return
  throw new ApiError(
    'RATE_LIMITED',
    `too many sign-ins from this address in this minute; wait until ${new Date(reset).toISOString()}`,
    { details: { rate: { remaining: 0, reset } } },
  )
}

/**
 * First step of a sign-in by password. For every email address and every failure, the response and
 * its time are the same.
 * @returns the token for the second step
 * @throws ApiError `SIGN_IN_FAILED`, `RATE_LIMITED`, `UNAVAILABLE`
 */
export async function checkPassword(
  services: Pick<Services, 'environment' | 'database' | 'people'>,
  email: string,
  password: string,
  from: From,
): Promise<string> {
  countSignIn(services, from)
  const trier = { email, ip: from.ip }
  // A password that the queue rejects is not checked, so it does not count as a failure.
  return services.people.hashing.run(trier, () => tryPassword(services, trier, password))
}

async function tryPassword(
  services: Pick<Services, 'environment' | 'database' | 'people'>,
  trier: Trier,
  password: string,
): Promise<string> {
  const { database, environment, people } = services
  await database.transaction((tx) => countTry(tx, trier))
  const person = await database.one<{
    id: string
    password_hash: string | null
    has_second: boolean
  }>(
    `select id, password_hash, totp_secret is not null
       or exists (select 1 from recovery_codes where person_id = people.id
         and used_at is null) has_second
     from people where email = $1`,
    [trier.email],
  )
  const isRight = await isPassword(password, person?.password_hash ?? null, people.passwordCost)
  if (!person || !isRight || !person.has_second)
    throw new ApiError('SIGN_IN_FAILED', 'the e-mail address or the password is wrong')
  return database.transaction(async (tx) => {
    await reset(tx, trier)
    return beginStep(tx, environment, 'sign-in', person.id, {})
  })
}

const STEP_GONE = 'the sign-in was not finished in time, or had too many attempts: begin again'

/** A person's request to complete the sign-in that `token` names. */
interface SecondStep {
  token: string
  factor: 'totp' | 'recovery'
  code: string
  from: From
  /** Earlier session of the same browser. */
  before: Session | null
}

/**
 * Second step of a sign-in: a code of the authenticator app, or a recovery code.
 * @throws ApiError `SIGN_IN_FAILED`, `RATE_LIMITED`
 */
export async function finishSignIn(
  services: Services,
  { token, factor, code, from, before }: SecondStep,
): Promise<Reply> {
  countSignIn(services, from)
  const step = await tryStep(services.database, 'sign-in', token)
  if (!step?.personId) throw new ApiError('SIGN_IN_FAILED', STEP_GONE)
  const { personId } = step
  return showCode(services, { personId, factor, code, from }, (trier, take) =>
    signIn(services, { personId, factor, from, before }, async (tx) => {
      await take(tx)
      if (!(await endStep(tx, token))) throw new ApiError('SIGN_IN_FAILED', STEP_GONE)
      await reset(tx, trier, { all: true })
    }),
  )
}

/** Thrown if the code is wrong or was used already. */
class WrongCode extends ApiError {
  constructor(factor: 'totp' | 'recovery') {
    super(
      'SIGN_IN_FAILED',
      factor === 'totp'
        ? 'code: is wrong, or was already used'
        : 'code: is not one of your recovery codes, or was already used',
      {
        field: 'code',
      },
    )
  }
}

/**
 * Counts an attempt at a person's second factor, and lets `use` use up the code in the transaction
 * of the action that it authorizes, so that a code is not lost if the action fails.
 * @throws ApiError `SIGN_IN_FAILED`, which is recorded in the audit log, because the caller had the
 *   correct password or a session
 */
export async function showCode<T>(
  services: Pick<Services, 'environment' | 'database' | 'people'>,
  {
    personId,
    factor,
    code,
    from,
  }: { personId: string; factor: 'totp' | 'recovery'; code: string; from: From },
  use: (trier: Trier, take: (tx: Queryable) => Promise<void>) => Promise<T>,
): Promise<T> {
  const { database } = services
  const person = await database.one<{ email: string; totp_secret: Buffer | null }>(
    'select email, totp_secret from people where id = $1',
    [personId],
  )
  if (!person) throw new ApiError('SIGN_IN_FAILED', STEP_GONE)
  const trier = { email: person.email, ip: from.ip }
  await database.transaction((tx) => countTry(tx, trier))
  const step = factor === 'totp' ? stepNow(services, personId, person.totp_secret, code) : null
  try {
    return await use(trier, async (tx) => {
      const isTaken =
        factor === 'recovery'
          ? await takeRecoveryCode(tx, personId, code)
          : step !== null && (await takeStep(tx, personId, step))
      if (!isTaken) throw new WrongCode(factor)
    })
  } catch (error) {
    if (error instanceof WrongCode) {
      const actor = { ...actorOf({ id: '', personId, email: person.email }, from), session: null }
      await database.transaction((tx) =>
        writeAuditEverywhere(tx, personId, actor, {
          action: 'sign_in.failed',
          details: { factor },
        }),
      )
    }
    throw error
  }
}

/**
 * Returns the time step of a valid code; null if the code is wrong.
 * @throws ApiError `UNAVAILABLE` if the secret cannot be decrypted
 */
function stepNow(
  { people, environment }: Pick<Services, 'environment' | 'people'>,
  personId: string,
  sealed: Buffer | null,
  code: string,
): number | null {
  if (sealed === null) return null
  let secret: string
  try {
    secret = people.secrets.open(ownerOfTotp(personId), sealed)
  } catch {
    throw new ApiError(
      'UNAVAILABLE',
      'the authenticator’s secret cannot be decrypted: the operator has changed the secrets key',
    )
  }
  return stepOfCode(secret, code.replaceAll(/\s/g, ''), environment.now())
}

/** A person who has confirmed their factors. */
interface ConfirmedSignIn {
  personId: string
  factor: Factor
  from: From
  /** Earlier session of the same browser, which ends. */
  before: Session | null
}

/**
 * Opens a session for a person who has confirmed their factors, in place of this browser's earlier
 * session. The token is new, so that it cannot have been known to others before.
 * @param proof further changes that are committed with it
 */
export async function signIn(
  services: Pick<Services, 'settings' | 'database' | 'people'>,
  confirmed: ConfirmedSignIn,
  proof: (tx: Queryable) => Promise<void>,
): Promise<Reply> {
  const { database, people } = services
  const { personId, from } = confirmed
  const token = await database.transaction(async (tx) => {
    await proof(tx)
    return openSession(services, tx, confirmed)
  })
  people.sessions.forget()
  return {
    headers: cookieHeaders(token, from),
    body: await presentSession(services, personId, from),
  }
}

/**
 * Opens the session within a transaction.
 * @returns its token
 */
export async function openSession(
  { people }: Pick<Services, 'people'>,
  tx: Queryable,
  { personId, factor, from, before }: ConfirmedSignIn,
): Promise<string> {
  if (before) await people.sessions.end(tx, before.personId, { id: before.id })
  const { id, token } = await people.sessions.open(tx, personId, from)
  const person = await tx.one<{ email: string }>('select email from people where id = $1', [
    personId,
  ])
  await writeAuditEverywhere(
    tx,
    personId,
    actorOf({ id, personId, email: person?.email ?? '' }, from),
    {
      action: 'session.opened',
      object: id,
      details: { factor, user_agent: from.userAgent.slice(0, 300) },
    },
  )
  return token
}
