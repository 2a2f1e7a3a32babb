// go run sign.go METHOD PATH [BODY]    one signed request with Go's own library
// CUSTODY_URL, CUSTODY_API_KEY, CUSTODY_KEY (PEM file of the private key, PKCS #8)
package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

var base64url = base64.RawURLEncoding.EncodeToString

func readKey(file string) (*rsa.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("CUSTODY_KEY is not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	if own, ok := key.(*rsa.PrivateKey); ok {
		return own, nil
	}
	return nil, errors.New("CUSTODY_KEY is no RSA key")
}

func token(key *rsa.PrivateKey, apiKey, path, body string) (string, error) {
	nonce := make([]byte, 16)
	if _, err := rand.Read(nonce); err != nil {
		return "", err
	}
	hash := sha256.Sum256([]byte(body))
	now := time.Now().Unix()
	claims, err := json.Marshal(map[string]any{
		"uri": path, "nonce": hex.EncodeToString(nonce), "iat": now, "exp": now + 25, "sub": apiKey,
		"bodyHash": hex.EncodeToString(hash[:]),
	})
	if err != nil {
		return "", err
	}
	input := base64url([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + base64url(claims)
	digest := sha256.Sum256([]byte(input))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return "", err
	}
	return input + "." + base64url(signature), nil
}

func run() (int, error) {
	method, path, body := os.Args[1], os.Args[2], ""
	if len(os.Args) > 3 {
		body = os.Args[3]
	}
	apiKey := os.Getenv("CUSTODY_API_KEY")
	key, err := readKey(os.Getenv("CUSTODY_KEY"))
	if err != nil {
		return 0, err
	}
	signed, err := token(key, apiKey, path, body)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequest(method, os.Getenv("CUSTODY_URL")+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+signed)
	request.Header.Set("x-api-key", apiKey)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{Timeout: 30 * time.Second}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	fmt.Println(string(text))
	return answer.StatusCode, err
}

func main() {
	status, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if status/100 != 2 {
		os.Exit(1)
	}
}
