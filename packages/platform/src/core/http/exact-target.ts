import { ApiError } from '../errors.ts'

/**
 * Rejects write requests whose target is not in canonical form. The caller's signature covers the
 * path as sent, and the signer nodes accept only one spelling of each path, so anything that the
 * router would normalize (a query, percent-encoding, a fragment) is rejected.
 * @param target request target in origin-form
 * @param path path of the endpoint, with its parameters in braces
 * @throws ApiError `INVALID_REQUEST`
 */
export function assertExactTarget(target: string, path: string): void {
  const inputs = target.split('/')
  const wanted = path.split('/')
  const isExact =
    inputs.length === wanted.length &&
    wanted.every((part, at) =>
      part.startsWith('{') ? /^[\w-]+$/.test(inputs[at] as string) : part === inputs[at],
    )
  if (isExact) return
  throw new ApiError(
    'INVALID_REQUEST',
    `path: must be ${path} exactly, without a query string or percent-encoding, because the signer nodes verify the signed path`,
    { field: 'path' },
  )
}
