import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import {
  consoleOrigin,
  firstOwnerInvitation,
  linkOf,
} from '../../console-api/people/invitations.ts'

interface Services {
  settings: Pick<Settings, 'home' | 'publicUrl'>
  environment: Environment
  database: Database
}

/**
 * File in the data folder with the link for the first owner; readable by the platform's user only.
 */
export const FIRST_OWNER_LINK = 'first-owner-link'

/**
 * Creates the link for the first owner as long as no workspace has one. The person who opens
 * the link becomes the owner, so it is printed only on a terminal. The output of a service is stored in a
 * journal that more people can read, so in that case the link is written to a file in the data
 * folder.
 * @param isTerminal whether the line is shown to a person
 * @returns the line to print; null if there is an owner
 */
export async function announceFirstOwner(
  services: Services,
  port: number,
  isTerminal: boolean,
): Promise<string | null> {
  const { settings } = services
  const file = join(settings.home, FIRST_OWNER_LINK)
  rmSync(file, { force: true })
  const invitation = await firstOwnerInvitation(services)
  if (invitation === null) return null
  const link = linkOf(consoleOrigin(settings, port), invitation.token)
  if (isTerminal) return `console ${link}`
  writeFileSync(file, `${link}\n`, { mode: 0o600, flag: 'wx' })
  return `console: the first owner can join with the link in ${file} until ${invitation.expiresAt.toISOString()}`
}
