/** An error response in the format of RFC 7807, in Horizon's words. */
export class Problem extends Error {
  readonly status: number
  readonly body: Record<string, unknown>

  constructor(
    status: number,
    type: string,
    title: string,
    detail: string,
    extras?: Record<string, unknown>,
  ) {
    super(title)
    this.status = status
    this.body = {
      type: `https://stellar.org/horizon-errors/${type}`,
      title,
      status,
      detail,
      ...(extras ? { extras } : {}),
    }
  }
}

export const missing = () =>
  new Problem(
    404,
    'not_found',
    'Resource Missing',
    'The resource at the url requested was not found.',
  )
export const badRequest = (field: string, reason: string) =>
  new Problem(400, 'bad_request', 'Bad Request', 'The request you sent was invalid in some way.', {
    invalid_field: field,
    reason,
  })
