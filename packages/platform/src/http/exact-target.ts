import { ApiError } from '../errors.ts'

/**
 * A caller's signature covers the path as it was spelt, and the signer nodes know one spelling of
 * each: what the router would tidy up (a query, percent-encoding, a fragment) is refused on writes.
 * @param target in origin-form
 * @param path of the endpoint, with its parameters in braces
 * @throws ApiError `INVALID_REQUEST`
 */
export function assertExactTarget(target: string, path: string): void {
  const given = target.split('/')
  const wanted = path.split('/')
  const isExact =
    given.length === wanted.length &&
    wanted.every((part, at) =>
      part.startsWith('{') ? /^[\w-]+$/.test(given[at] as string) : part === given[at],
    )
  if (isExact) return
  throw new ApiError(
    'INVALID_REQUEST',
    `path: must be ${path} exactly, without a query string or percent-encoding, because the signer nodes verify the signed path`,
    { field: 'path' },
  )
}
