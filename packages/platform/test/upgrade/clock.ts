/** This process's clock is behind by CUSTODY_TEST_BEHIND_MS: what was left behind goes on when it was left. */
const behindMs = Number(process.env['CUSTODY_TEST_BEHIND_MS'] ?? 0)
const Real = Date
const now = () => Real.now() - behindMs
globalThis.Date = new Proxy(Real, {
  construct: (target, given: [], newTarget) => Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget) as Date,
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name) as unknown),
})
