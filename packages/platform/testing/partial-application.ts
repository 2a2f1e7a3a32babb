import type { Application } from '../src/server/app/application.ts'

/**
 * Returns an application of which only some members exist, for tests of modules that are composed
 * of many others. Reading a member that the test did not provide throws an error with its name.
 */
export const partialApplication = (parts: Partial<Record<keyof Application, unknown>>) =>
  new Proxy(parts, {
    get(target, name) {
      if (typeof name === 'string' && !Object.hasOwn(target, name))
        throw new Error(`the test provides no ${name}`)
      return Reflect.get(target, name) as unknown
    },
  }) as Application
