import { createHash } from 'node:crypto'
import type { AuditWrite } from '../../core/http/authentication/api-authenticator.ts'
import type { Database } from '../../core/database/pool.ts'
import { writeAudit } from './audit-log.ts'

const URI_MAX = 500

/**
 * Records a change that an API key requests, before it is made, because the change may be made
 * although the response is lost. For keys of machines, which do not belong to a person, only
 * changes of settings are recorded: a line for each transfer would serialize the transfers of a
 * workspace.
 */
export const auditWritesTo =
  (database: Database): AuditWrite =>
  async (caller, signed, ip) => {
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
