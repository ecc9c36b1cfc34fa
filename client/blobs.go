package client

import (
	"context"
	"io"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// PutBlob makes a blob of an owner's, nil: the caller's, of the next bytes of from.
func PutBlob(ctx context.Context, c *Client, owner *uint32, from io.Reader, bytes int64) (b api.Blob, err error) {
	opened, err := Do(ctx, c, methods.BlobUpload, api.BlobUploadParams{Owner: owner, Bytes: bytes})
	if err != nil {
		return b, err
	}
	part := make([]byte, api.BlobPartMost)
	for at := int64(0); at < bytes; {
		n, err := io.ReadFull(from, part[:min(int64(len(part)), bytes-at)])
		if err != nil {
			return b, err
		}
		if _, err := Do(ctx, c, methods.BlobPart, api.BlobWriteParams{Upload: opened.Upload, Offset: at, Data: part[:n]}); err != nil {
			return b, err
		}
		at += int64(n)
	}
	made, err := Do(ctx, c, methods.BlobFinish, api.BlobCloseParams{Upload: opened.Upload})
	return made.Blob, err
}

// GetBlob writes a blob of an owner's, nil: the caller's, to to.
func GetBlob(ctx context.Context, c *Client, owner *uint32, sha256 string, to io.Writer) error {
	for at := int64(0); ; {
		part, err := Do(ctx, c, methods.BlobFetch, api.BlobFetchParams{Owner: owner, Blob: sha256, Offset: at})
		if err != nil {
			return err
		}
		if _, err := to.Write(part.Data); err != nil {
			return err
		}
		if at = part.NextOffset; at == 0 {
			return nil
		}
	}
}
