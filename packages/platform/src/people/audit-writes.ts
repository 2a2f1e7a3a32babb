import { createHash } from 'node:crypto'
import type { AuditWrite } from '../http/api-authenticator.ts'
import { writeAudit } from './audit-log.ts'

const URI_MAX = 500

/**
 * Writes down what an API key asks to be changed, before anything is: an answer that was lost was
 * asked for all the same. Of keys of machines, which are not a person's, only changes of settings:
 * a line for each transfer would be one after the other for a workspace.
 */
export const auditWrite: AuditWrite = async ({ database }, caller, signed, ip) => {
  const person =
    caller.personId === null
      ? undefined
      : await database.one<{ email: string }>('select email from people where id = $1', [
          caller.personId,
        ])
  await database.transaction((tx) =>
    writeAudit(
      tx,
      caller.workspaceId,
      {
        type: 'api_user',
        id: caller.apiKey,
        name: person?.email ?? caller.apiKey,
        session: null,
        ip,
      },
      {
        action: 'request.signed',
        object: signed.uri.slice(0, URI_MAX),
        details: {
          method: signed.method,
          sub_account: caller.subAccount,
          body_sha256: createHash('sha256').update(signed.body).digest('hex'),
          person: caller.personId,
        },
      },
    ),
  )
}
