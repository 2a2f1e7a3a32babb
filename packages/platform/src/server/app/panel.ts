import {
  changeApiUser,
  listApiUsers,
  requestApiUser,
  revokeApiUser,
} from '../../console-api/console/api-users.ts'
import { readWaiting } from '../../console-api/console/attention/read-waiting.ts'
import { readAttention } from '../../console-api/console/attention/read-attention.ts'
import { exportAuditLog, listAuditLog } from '../../console-api/console/audit-log.ts'
import {
  confirmPasskey,
  confirmPasskeyOptions,
  confirmRecovery,
  confirmTotp,
} from '../../console-api/console/confirm.ts'
import { openApiOf } from '../../console-api/console/document.ts'
import { exportTransactions } from '../../console-api/console/export-transactions.ts'
import { readHealth } from '../../console-api/console/health.ts'
import {
  createInvitation,
  listInvitations,
  withdrawInvitation,
} from '../../console-api/console/invitations.ts'
import {
  addMyPasskey,
  addMyPasskeyOptions,
  listMyPasskeys,
  removeMyPasskey,
} from '../../console-api/console/my-passkeys.ts'
import { removeMyPassword, setMyPassword } from '../../console-api/console/my-password.ts'
import { renewMyRecoveryCodes } from '../../console-api/console/my-recovery-codes.ts'
import {
  endMySession,
  endOtherSessions,
  listMySessions,
} from '../../console-api/console/my-sessions.ts'
import { confirmMyTotp, setMyTotp } from '../../console-api/console/my-totp.ts'
import { changePerson, listPeople, removePerson } from '../../console-api/console/people.ts'
import { readOverview } from '../../console-api/console/overview.ts'
import { readSeries } from '../../console-api/console/series.ts'
import { readSettings } from '../../console-api/console/settings.ts'
import { readTimeline } from '../../console-api/console/timeline.ts'
import { listViews, saveViews } from '../../console-api/console/views.ts'
import { joinPasskey, joinPasskeyOptions } from '../../console-api/console/join-passkey.ts'
import { joinPassword, joinTotp } from '../../console-api/console/join-password.ts'
import { join } from '../../console-api/console/join.ts'
import { mirrorOf } from '../../console-api/console/mirror.ts'
import { readInvitation } from '../../console-api/console/read-invitation.ts'
import { readSession } from '../../console-api/console/read-session.ts'
import { signInPasskey, signInPasskeyOptions } from '../../console-api/console/sign-in-passkey.ts'
import {
  signInPassword,
  signInRecovery,
  signInTotp,
} from '../../console-api/console/sign-in-password.ts'
import { signInRecoveryCode } from '../../console-api/console/sign-in-recovery-code.ts'
import { signOut } from '../../console-api/console/sign-out.ts'
import type { Application } from './application.ts'
import type { OtherEndpoints } from '../../core/http/server.ts'
import { panelAuthenticator } from '../../console-api/people/panel-authenticator.ts'
import type { PanelEndpoint } from '../../console-api/people/endpoint.ts'
import { endpoints } from './endpoints.ts'

/** All endpoints of the control panel. A new endpoint is a file in `console` and a line here. */
export const panelEndpoints: readonly PanelEndpoint<Application>[] = [
  readSession,
  signInPassword,
  signInTotp,
  signInRecovery,
  signInRecoveryCode,
  signInPasskeyOptions,
  signInPasskey,
  signOut,
  readInvitation,
  join,
  joinPasskeyOptions,
  joinPasskey,
  joinPassword,
  joinTotp,
  listMySessions,
  endMySession,
  endOtherSessions,
  listMyPasskeys,
  addMyPasskeyOptions,
  addMyPasskey,
  removeMyPasskey,
  setMyPassword,
  removeMyPassword,
  setMyTotp,
  confirmMyTotp,
  renewMyRecoveryCodes,
  confirmTotp,
  confirmRecovery,
  confirmPasskeyOptions,
  confirmPasskey,
  listPeople,
  changePerson,
  removePerson,
  listInvitations,
  createInvitation,
  withdrawInvitation,
  listAuditLog,
  exportAuditLog,
  listViews,
  saveViews,
  listApiUsers,
  requestApiUser,
  changeApiUser,
  revokeApiUser,
  readHealth,
  readSettings,
  readOverview,
  readAttention,
  readWaiting,
  readSeries,
  exportTransactions,
  readTimeline,
  ...mirrorOf(endpoints),
  openApiOf(() => panelEndpoints),
]

/** The control panel's endpoints with their authenticator. */
export const panelFor = (services: Application): OtherEndpoints<PanelEndpoint<Application>> => ({
  list: panelEndpoints,
  authenticator: (limits) => panelAuthenticator(services, limits),
})
