import { networkMode } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { WORKSPACE_NAME } from '../../custody/prepaid-fee/ensure-workspace.ts'
import { PASSWORD_LENGTH } from './password.ts'
import { ROLES } from './roles.ts'

/** Maximum length of an email address, in characters. */
const EMAIL_MAX = 254

const plain = (value: string): boolean => !/[\p{Cc}\p{Cs}]/u.test(value)

export const email = z
  .string()
  .max(EMAIL_MAX)
  .transform((text) => text.trim().normalize('NFC').toLowerCase())
  .refine((text) => /^[^\s@]+@[^\s@]+$/.test(text) && plain(text), 'must be an e-mail address')
  .meta({ type: 'string', format: 'email', maxLength: EMAIL_MAX })

/** A displayed name: of a person, a passkey or a view. */
export const title = (max = 100) =>
  z
    .string()
    .min(1)
    .max(max)
    .transform((text) => text.trim().normalize('NFC'))
    .refine((text) => text !== '' && plain(text), 'must consist of visible characters')
    .meta({ type: 'string', minLength: 1, maxLength: max })

export const workspaceName = z
  .string()
  .regex(WORKSPACE_NAME, 'must be 1 to 100 letters, digits, spaces or . _ @ -')

export const newPassword = z.string().min(PASSWORD_LENGTH.min).max(PASSWORD_LENGTH.max)
export const typedPassword = z.string().max(PASSWORD_LENGTH.max)
export const token = z.string().max(100)
export const code = z.string().max(40)
export const role = z.enum(ROLES)
/** Response of a browser's `navigator.credentials`, in the format of @simplewebauthn/browser. */
export const passkeyResponse = z.record(z.string(), z.unknown())
/** Options for @simplewebauthn/browser. */
export const passkeyOptions = z.object({
  challenge_id: z.string(),
  options: z.record(z.string(), z.unknown()),
})

export const time = z.iso.datetime()

export const sessionShape = z.object({
  person: z
    .object({
      id: z.uuid(),
      email: z.string(),
      name: z.string(),
      has_password: z.boolean(),
      has_totp: z.boolean(),
      recovery_codes_left: z.int(),
      passkeys: z.int(),
    })
    .nullable()
    .meta({ description: 'Null: no person is signed in' }),
  workspaces: z.array(z.object({ name: z.string(), role, sub_accounts: z.array(z.string()) })),
  passkeys_available: z.boolean().meta({
    description: 'False if the page’s host is an IP address: open http://localhost instead',
  }),
  network: networkMode,
  version: z.string(),
  command: z.enum(['npx custody', 'custody']).meta({
    description: 'Name of the command-line program in this installation: in a bundle `custody`',
  }),
})
