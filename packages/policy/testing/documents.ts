import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { Act } from '../src/act.ts'
import type { Person, PersonKey } from '../src/document/people.ts'
import { checkDocument } from '../src/document/read.ts'
import type { Rule } from '../src/document/rules.ts'
import type { PolicyDocument } from '../src/document/shape.ts'
import { compile, type Policy } from '../src/evaluation/compile.ts'
import type { EvaluationContext } from '../src/evaluation/evaluate.ts'
import { registry } from './registry.ts'

/** Unix seconds at which the tests take place. */
export const NOW = 1_900_000_000

export interface TestKey {
  readonly key: PersonKey
  readonly privateKey: KeyObject
}

/** Returns a new key pair as a person's key. */
export function newKey(id: string, alg: 'Ed25519' | 'ES256' = 'Ed25519'): TestKey {
  const pair =
    alg === 'Ed25519'
      ? generateKeyPairSync('ed25519')
      : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = pair.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  return { key: { id, kind: 'key', alg, spki }, privateKey: pair.privateKey }
}

const NAMES = ['alice', 'bob', 'carol', 'dan', 'erin', 'frank'] as const

/** Keys of the people of {@link documentWith}; `bob` and `erin` have P-256 keys. */
const KEYS: ReadonlyMap<string, TestKey> = new Map(
  [...NAMES, 'compliance'].map((name) => [
    name,
    newKey('k1', name === 'bob' || name === 'erin' ? 'ES256' : 'Ed25519'),
  ]),
)

export const keyOf = (name: string): TestKey => {
  const key = KEYS.get(name)
  if (key === undefined) throw new Error(`${name} has no key`)
  return key
}

const people = (): Person[] => [
  ...NAMES.map((id) => ({ id, name: id, api_keys: [`api-${id}`], keys: [keyOf(id).key] })),
  {
    id: 'compliance',
    name: 'Compliance system',
    machine: true as const,
    api_keys: [],
    keys: [keyOf('compliance').key],
  },
]

/** Returns a value that is a valid document with the given rules and fields. */
export const documentWith = (
  rules: readonly unknown[] = [],
  fields: Partial<Record<keyof PolicyDocument, unknown>> = {},
): Record<string, unknown> => ({
  kind: 'custody-policy',
  v: 1,
  mode: 'mainnet',
  workspace: 'acme',
  number: 1,
  previous: '0'.repeat(64),
  nodes: 'ab'.repeat(32),
  people: people(),
  groups: {
    admins: ['alice', 'bob', 'carol'],
    treasury: ['dan', 'erin', 'frank'],
    compliance: ['compliance'],
  },
  change: { approvals: [{ group: 'admins', k: 2 }], delay_s: 86_400, veto: 'admins' },
  stop: { group: 'admins' },
  resume: { approvals: [{ group: 'admins', k: 2 }] },
  rules,
  ...fields,
})

/** Returns the compiled document with the given rules and fields. */
export const policyWith = (
  rules: readonly unknown[],
  fields: Partial<Record<keyof PolicyDocument, unknown>> = {},
): Policy => compile(checkDocument(documentWith(rules, fields)), registry)

/** Returns an `allow` for transfers of every asset, with the given fields. */
export const allow = (id: string, fields: object = {}): Rule =>
  ({ id, effect: 'allow', match: { action: ['transfer'], assets: 'any' }, ...fields }) as Rule

/** Returns a transfer of 0.1 BTC that `alice` requested, with the given fields. */
export const actWith = (fields: Partial<Act> = {}): Act => ({
  id: '5f1c0e0e-3b6e-8c3a-9d5e-0a4b7c2d1e6f',
  subject: 'ef'.repeat(32),
  step: 'step-1',
  action: 'transfer',
  workspace: 'acme',
  sub_account: 'main',
  api_key: 'api-alice',
  asset: 'BTC',
  network: 'BTC',
  amount: 10_000_000n,
  to: { address: 'bc1qpayee', tag: null, own: null },
  fee: { max: 1_000n, limit: 50_000n },
  issued_at: NOW - 10,
  standing: null,
  resource: null,
  ...fields,
})

/** Returns a context without approvals and with empty windows, with the given fields. */
export const contextWith = (fields: Partial<EvaluationContext> = {}): EvaluationContext => ({
  now_s: NOW,
  usesOf: () => [],
  approvals: [],
  suspended: new Set(),
  ...fields,
})

/** Returns valid approvals of people by their key `k1`. */
export const approvalsOf = (...names: string[]) =>
  names.map((by) => ({ by, key: 'k1', at: NOW - 5, expires: NOW + 3_600 }))
