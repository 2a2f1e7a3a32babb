import type { Queryable, Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { People } from './people.ts'
import type { Reply } from '../../core/http/endpoint.ts'
import { writeAuditEverywhere } from './audit-log.ts'
import { lockPerson } from './factors.ts'
import { countTry, reset, type Trier } from './failures.ts'
import { isPassword } from './password.ts'
import { ownerOfRecoveryCode, takeRecoveryCode } from './recovery-codes.ts'
import { actorOf, type From, type Session } from './sessions.ts'
import { countSignIn, signIn } from './sign-in.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  environment: Environment
  database: Database
  people: People
}

const wrong = () =>
  new ApiError('SIGN_IN_FAILED', 'the e-mail address or the recovery code is wrong')

/**
 * Signs in a person without a password by email address and recovery code, after the loss of their
 * passkey. All their other sessions end, since one of them may be open on the lost device. Limits,
 * locks and the queue are the same as for passwords; an unknown address, a wrong code, a person
 * without codes and a person with a password get the same response.
 * @throws ApiError `SIGN_IN_FAILED`, `RATE_LIMITED`, `UNAVAILABLE`
 */
export async function signInByRecoveryCode(
  services: Services,
  email: string,
  code: string,
  from: From,
  before: Session | null,
): Promise<Reply> {
  countSignIn(services, from)
  const trier = { email, ip: from.ip }
  return services.people.hashing.run(trier, () => tryCode(services, trier, code, from, before))
}

async function tryCode(
  services: Services,
  trier: Trier,
  code: string,
  from: From,
  before: Session | null,
): Promise<Reply> {
  const { database, people } = services
  await database.transaction((tx) => countTry(tx, trier))
  // A code of 80 random bits does not require a slow hash. It takes as long as a password check, so
  // that the time does not reveal the result.
  await isPassword(code, null, people.passwordCost)
  const personId = await ownerOfRecoveryCode(database, trier.email, code)
  if (personId === null) throw wrong()
  return signIn(services, { personId, factor: 'recovery', from, before }, async (tx) => {
    await lockPerson(tx, personId)
    // The owner of the code is read again under the lock: a concurrent request may have used the
    // code or set a password.
    if (
      (await ownerOfRecoveryCode(tx, trier.email, code)) !== personId ||
      !(await takeRecoveryCode(tx, personId, code))
    )
      throw wrong()
    const ended = await people.sessions.end(tx, personId)
    await reset(tx, trier, { all: true })
    await writeAuditEverywhere(
      tx,
      personId,
      { ...actorOf({ id: '', personId, email: trier.email }, from), session: null },
      {
        action: 'recovery_code.used',
        details: { codes_left: await codesLeft(tx, personId), sessions_ended: ended.length },
      },
    )
  })
}

async function codesLeft(tx: Queryable, personId: string): Promise<number> {
  const row = await tx.one<{ left: number }>(
    'select count(*)::int "left" from recovery_codes where person_id = $1 and used_at is null',
    [personId],
  )
  return row?.left ?? 0
}
