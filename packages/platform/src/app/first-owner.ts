import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Services } from '../engine/services.ts'
import { consoleOrigin, firstOwnerInvitation, linkOf } from '../people/invitations.ts'

/**
 * File in the data folder with the link by which the first owner joins; readable by the platform's
 * user alone.
 */
export const FIRST_OWNER_LINK = 'first-owner-link'

/**
 * Makes the link of the first owner while no workspace has one. Who has the link becomes the owner,
 * so it is printed on a terminal and nowhere else: what a service prints is kept in a journal that
 * more people read. There it is written to a file of the data folder.
 * @param isTerminal whether the line is shown to a person
 * @returns the line to print; null: there is an owner
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
