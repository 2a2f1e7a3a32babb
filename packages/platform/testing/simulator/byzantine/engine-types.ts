import type { Engine } from '../../../../signer/src/sessions/engine.ts'

/** Types of the signing engine, which the platform's packages do not import. */
export type SignOptions = Parameters<Engine['startSign']>[0]
export type SignSession = ReturnType<Engine['startSign']>
type SignStep = Awaited<ReturnType<SignSession['step']>>
export type SignResult = Extract<SignStep, { kind: 'done' }>['result']
export type KeyMaterial = SignOptions['key']
export type Vault = SignOptions['vault']
