import { changeApiUser, listApiUsers, requestApiUser, revokeApiUser } from '../console/api-users.ts'
import { exportAuditLog, listAuditLog } from '../console/audit-log.ts'
import {
  confirmPasskey,
  confirmPasskeyOptions,
  confirmRecovery,
  confirmTotp,
} from '../console/confirm.ts'
import { openApiOf } from '../console/document.ts'
import { exportTransactions } from '../console/export-transactions.ts'
import { readHealth } from '../console/health.ts'
import { createInvitation, listInvitations, withdrawInvitation } from '../console/invitations.ts'
import {
  addMyPasskey,
  addMyPasskeyOptions,
  listMyPasskeys,
  removeMyPasskey,
} from '../console/my-passkeys.ts'
import { removeMyPassword, setMyPassword } from '../console/my-password.ts'
import { renewMyRecoveryCodes } from '../console/my-recovery-codes.ts'
import { endMySession, endOtherSessions, listMySessions } from '../console/my-sessions.ts'
import { confirmMyTotp, setMyTotp } from '../console/my-totp.ts'
import { changePerson, listPeople, removePerson } from '../console/people.ts'
import { readOverview } from '../console/overview.ts'
import { readSeries } from '../console/series.ts'
import { readSettings } from '../console/settings.ts'
import { readTimeline } from '../console/timeline.ts'
import { listViews, saveViews } from '../console/views.ts'
import { joinPasskey, joinPasskeyOptions } from '../console/join-passkey.ts'
import { joinPassword, joinTotp } from '../console/join-password.ts'
import { join } from '../console/join.ts'
import { mirrorOf } from '../console/mirror.ts'
import { readInvitation } from '../console/read-invitation.ts'
import { readSession } from '../console/read-session.ts'
import { signInPasskey, signInPasskeyOptions } from '../console/sign-in-passkey.ts'
import { signInPassword, signInRecovery, signInTotp } from '../console/sign-in-password.ts'
import { signInRecoveryCode } from '../console/sign-in-recovery-code.ts'
import { signOut } from '../console/sign-out.ts'
import type { OtherEndpoints } from '../http/server.ts'
import { panelAuthenticator } from '../people/panel-authenticator.ts'
import type { PanelEndpoint } from '../people/endpoint.ts'
import { endpoints } from './endpoints.ts'

/** All endpoints of the control panel. A new endpoint is a file in `console` and a line here. */
export const panelEndpoints: readonly PanelEndpoint[] = [
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
  readSeries,
  exportTransactions,
  readTimeline,
  ...mirrorOf(endpoints),
  openApiOf(() => panelEndpoints),
]

/** The control panel's endpoints with their authenticator. */
export const panel: OtherEndpoints<PanelEndpoint> = {
  list: panelEndpoints,
  authenticator: panelAuthenticator,
}
