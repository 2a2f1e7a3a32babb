import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { KekError } from './errors.ts'

const text = z.string().min(1).max(1024)
/** A file, a descriptor such as /dev/fd/3, or `credential:NAME` of systemd. */
const secret = text
const kindsOf = {
  file: z.strictObject({ kind: z.literal('file'), path: text.default('kek') }),
  passphrase: z.strictObject({
    kind: z.literal('passphrase'),
    file: secret.optional(),
    salt: z
      .string()
      .regex(/^([0-9a-f]{2}){16,64}$/)
      .optional(),
  }),
  pkcs11: z.strictObject({
    kind: z.literal('pkcs11'),
    module: text,
    token: text,
    key: text,
    id: z
      .string()
      .regex(/^([0-9a-f]{2}){1,64}$/)
      .optional(),
    pin_file: secret,
  }),
  'aws-kms': z.strictObject({
    kind: z.literal('aws-kms'),
    key: z
      .string()
      .regex(
        /^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key\/[A-Za-z0-9-]+$/,
        'must be the ARN of a key, not of an alias',
      ),
    credentials_file: secret,
    profile: text.default('default'),
    endpoint: text.optional(),
    ca_file: text.optional(),
  }),
  'gcp-kms': z.strictObject({
    kind: z.literal('gcp-kms'),
    key: z
      .string()
      .regex(
        /^projects\/[^/]+\/locations\/[^/]+\/keyRings\/[^/]+\/cryptoKeys\/[^/]+$/,
        'must be projects/…/locations/…/keyRings/…/cryptoKeys/…',
      ),
    credentials_file: secret,
    endpoint: text.optional(),
    ca_file: text.optional(),
  }),
  vault: z
    .strictObject({
      kind: z.literal('vault'),
      address: text,
      mount: z
        .string()
        .regex(/^[\w./-]+$/)
        .default('transit'),
      key: z.string().regex(/^[\w.-]+$/),
      namespace: text.optional(),
      token_file: secret.optional(),
      role_id: text.optional(),
      secret_id_file: secret.optional(),
      auth_mount: z
        .string()
        .regex(/^[\w./-]+$/)
        .default('approle'),
      ca_file: text.optional(),
    })
    .refine(
      ({ token_file: token, role_id: role, secret_id_file: id }) =>
        (token !== undefined) !== (role !== undefined && id !== undefined),
      'requires token_file, or role_id and secret_id_file',
    ),
}
const KINDS = Object.keys(kindsOf) as (keyof typeof kindsOf)[]

/**
 * The settings of one provider. They are public and may be in files and logs; secrets are referred
 * to by their location.
 */
export const kekSchema = z.union([
  kindsOf.file,
  kindsOf.passphrase,
  kindsOf.pkcs11,
  kindsOf['aws-kms'],
  kindsOf['gcp-kms'],
  kindsOf.vault,
])
export type KekSettings = z.infer<typeof kekSchema>
export type SettingsOf<K extends KekSettings['kind']> = Extract<KekSettings, { kind: K }>

function parse(setting: string, value: unknown): KekSettings {
  const kind = (value as { kind?: unknown } | null)?.kind
  if (typeof kind !== 'string' || !Object.hasOwn(kindsOf, kind)) {
    throw new KekError('SETTING', `${setting}: the provider must be one of ${KINDS.join(', ')}`)
  }
  const parsed = kindsOf[kind as keyof typeof kindsOf].safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const at = issue!.path.length > 0 ? ` ${issue!.path.join('.')}` : ''
  throw new KekError('SETTING', `${setting}: ${kind}${at}: ${issue!.message}`)
}

/**
 * Parses `KIND:name=value,name=value`, or `@FILE` with the same as JSON, for values that contain a
 * comma.
 * @param setting name for errors, such as `--kek`
 * @throws {KekError} SETTING
 */
export function readKek(setting: string, typed: string): KekSettings {
  if (typed.startsWith('@')) {
    let value: unknown
    try {
      value = JSON.parse(readFileSync(typed.slice(1), 'utf8'))
    } catch {
      throw new KekError('SETTING', `${setting}: ${typed.slice(1)} cannot be read as JSON`)
    }
    return parse(setting, value)
  }
  const colon = typed.indexOf(':')
  const kind = colon < 0 ? typed : typed.slice(0, colon)
  const fields: [string, string][] = (colon < 0 ? '' : typed.slice(colon + 1))
    .split(',')
    .filter((part) => part !== '')
    .map((part) => {
      const equals = part.indexOf('=')
      if (equals < 1)
        throw new KekError(
          'SETTING',
          `${setting}: ${kind}: must be name=value, separated by commas`,
        )
      return [part.slice(0, equals), part.slice(equals + 1)]
    })
  return parse(setting, { ...Object.fromEntries(fields), kind })
}
