import { policyRegistry, type Registry } from '@custody/chains'
import { checkDocument, compile, PolicyError, type Policy } from '@custody/policy'
import { stringifyJson } from '@custody/request-auth'
import { ApiError } from '../../core/errors.ts'

/** Returns the error for a field of the document in a request. */
export function invalidDocument(path: string, message: string): ApiError {
  const field = `document${path === '' ? '' : `.${path}`}`
  return new ApiError('INVALID_REQUEST', `${field}: ${message}`, { field })
}

/**
 * Compiles the document of a request.
 * @param workspace name of the caller's workspace
 * @throws ApiError `INVALID_REQUEST` that names the field of the document
 */
export function compiledOf(registry: Registry, workspace: string, input: object): Policy {
  try {
    const document = checkDocument(JSON.parse(stringifyJson(input)))
    if (document.workspace !== workspace)
      throw invalidDocument('workspace', `must be ${workspace}, the workspace of the API key`)
    return compile(document, policyRegistry(registry))
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    const { path, message } = error
    throw invalidDocument(
      path,
      message.startsWith(`${path}: `) ? message.slice(path.length + 2) : message,
    )
  }
}
