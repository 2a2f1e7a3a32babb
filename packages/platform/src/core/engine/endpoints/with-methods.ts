import type { ChainClient } from '@custody/chains'

export type Method = (...args: unknown[]) => Promise<unknown>

/** Returns a client with some methods replaced; those that it does not have stay absent. */
export const withMethods = <Client extends ChainClient>(
  client: Client,
  methods: Partial<Record<string, Method>>,
): Client =>
  new Proxy(client, {
    get: (target, name) => {
      const value = Reflect.get(target, name) as unknown
      if (typeof value !== 'function' || typeof name !== 'string') return value
      return methods[name] ?? (value.bind(target) as unknown)
    },
  })

/** Calls a method of a client by its name. */
export const call = <Answer>(client: ChainClient, name: string, args: unknown[]): Promise<Answer> =>
  (client as unknown as Record<string, (...all: unknown[]) => Promise<Answer>>)[name]!(...args)
