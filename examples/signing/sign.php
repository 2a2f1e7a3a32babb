<?php
// php sign.php METHOD PATH [BODY]    one signed request with PHP and its openssl
// CUSTODY_URL, CUSTODY_API_KEY, CUSTODY_KEY (PEM file of the private key)
declare(strict_types=1);

function base64url(string $data): string
{
    return rtrim(strtr(base64_encode($data), '+/', '-_'), '=');
}

function token(OpenSSLAsymmetricKey $key, string $apiKey, string $path, string $body): string
{
    $now = time();
    $claims = [
        'uri' => $path, 'nonce' => bin2hex(random_bytes(16)), 'iat' => $now, 'exp' => $now + 25, 'sub' => $apiKey,
        'bodyHash' => hash('sha256', $body),
    ];
    $encode = fn (array $part): string => base64url(json_encode($part, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE));
    $input = $encode(['alg' => 'RS256', 'typ' => 'JWT']) . '.' . $encode($claims);
    if (!openssl_sign($input, $signature, $key, OPENSSL_ALGO_SHA256)) {
        throw new RuntimeException('the request cannot be signed');
    }
    return $input . '.' . base64url($signature);
}

[, $method, $path] = $argv;
$body = $argv[3] ?? '';
$apiKey = (string) getenv('CUSTODY_API_KEY');
$key = openssl_pkey_get_private((string) file_get_contents((string) getenv('CUSTODY_KEY')));
if ($key === false) {
    fwrite(STDERR, "CUSTODY_KEY is no private key\n");
    exit(2);
}
$headers = ['Authorization: Bearer ' . token($key, $apiKey, $path, $body), 'x-api-key: ' . $apiKey];
if ($body !== '') {
    $headers[] = 'Content-Type: application/json';
}
$http = ['method' => $method, 'header' => $headers, 'ignore_errors' => true, 'follow_location' => 0, 'timeout' => 30];
$context = stream_context_create(['http' => $body === '' ? $http : $http + ['content' => $body]]);
echo file_get_contents(getenv('CUSTODY_URL') . $path, false, $context), "\n";
preg_match('/ (\d{3})/', $http_response_header[0], $status);
exit($status[1][0] === '2' ? 0 : 1);
